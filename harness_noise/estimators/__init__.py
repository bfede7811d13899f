"""The mathematics. Arrays in, small frozen results out; knows neither files, pandas nor harnesses."""
