"""Word problems in the manner of GSM-Symbolic: 20 templates × 10 instances, cluster = template.

The instances of a template differ in names and numbers only, so a model that fails one tends to
fail its siblings: what makes clustered standard errors necessary.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from random import Random

NAMES = ("Ada", "Bayo", "Chen", "Divya", "Emil", "Farah", "Goran", "Hana", "Ines", "Jomo")
Arithmetic = Callable[[int, int, int], int]

# a: 6–19, b: 2–9, c: 2–5; every answer is a whole number
TEMPLATES: tuple[tuple[str, str, Arithmetic], ...] = (
    ("apples", "{x} has {a} apples and buys {b} bags of {c} apples each. How many apples does {x} have now?",
     lambda a, b, c: a + b * c),
    ("books", "{x} reads {a} pages a day for {b} days, then {c} pages on the last day. How many pages is that?",
     lambda a, b, c: a * b + c),
    ("tickets", "A ticket costs {a} coins. {x} buys {b} tickets and gets {c} coins off the total. "
     "How many coins does {x} pay?", lambda a, b, c: a * b - c),
    ("marbles", "{x} shares {b} boxes of {c} marbles with a friend, who takes {c} marbles. "
     "How many marbles are left for {x}?", lambda a, b, c: b * c - c),
    ("garden", "A garden has {b} rows of {a} plants. {c} plants in each row die. How many plants are left?",
     lambda a, b, c: b * (a - c)),
    ("savings", "{x} saves {a} coins a week for {c} weeks and spends {b} of them. How many coins are left?",
     lambda a, b, c: a * c - b),
    ("train", "A train has {b} wagons with {a} seats each. {c} seats are broken. How many seats can be used?",
     lambda a, b, c: a * b - c),
    ("bakery", "{x} bakes {c} trays of {b} rolls in the morning and {a} rolls at noon. How many rolls is that?",
     lambda a, b, c: c * b + a),
    ("water", "A tank holds {a} litres for each of {c} houses, and {b} litres more. How many litres does it hold?",
     lambda a, b, c: a * c + b),
    ("team", "{x} forms {b} teams of {c} players, and {a} players wait. How many players are there?",
     lambda a, b, c: b * c + a),
    ("taxi", "A taxi ride costs {a} coins and {b} coins for each of {c} miles. How many coins does it cost?",
     lambda a, b, c: a + b * c),
    ("stamps", "{x} has {a} stamps, gives away {c} and then doubles what is left. How many stamps does {x} have?",
     lambda a, b, c: 2 * (a - c)),
    ("chairs", "A hall has {a} rows of {b} chairs and a balcony with {c} rows of {b} chairs. "
     "How many chairs are there?", lambda a, b, c: (a + c) * b),
    ("eggs", "Each of {a} hens lays {c} eggs a week. {x} eats {b} of them. How many eggs are left after a week?",
     lambda a, b, c: a * c - b),
    ("ribbon", "{x} cuts a ribbon into {c} pieces of {a} cm and has {b} cm left. How long was the ribbon, in cm?",
     lambda a, b, c: a * c + b),
    ("age", "{x} is {a} years old. In {b} years {x} will be {c} years younger than a cousin. "
     "How old will the cousin be then?", lambda a, b, c: a + b + c),
    ("parking", "A car park has {c} floors of {a} places. {b} places on each floor are taken. "
     "How many places are free?", lambda a, b, c: c * (a - min(a, b))),
    ("letters", "{x} writes {b} letters an hour for {c} hours and tears up {c} of them. "
     "How many letters are left?", lambda a, b, c: b * c - c),
    ("paint", "A wall takes {c} pots of paint, a house has {a} walls, and {b} pots are in store. "
     "How many pots must be bought?", lambda a, b, c: max(0, c * a - b)),
    ("score", "{x} wins {b} games worth {c} points each and then a final worth {a} points. "
     "How many points does {x} have?", lambda a, b, c: b * c + a),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Problem:
    id: str
    template: str
    question: str
    answer: int


@cache
def problems(instances: int = 10) -> tuple[Problem, ...]:
    """Return the demonstration's word problems, `instances` of each template, always the same by fixed seeds."""
    out = []
    for template, text, solve in TEMPLATES:
        random = Random(f"harness-noise {template}")
        questions: dict[str, int] = {}
        while len(questions) < instances:
            a, b, c = random.randint(6, 19), random.randint(2, 9), random.randint(2, 5)
            questions[text.format(x=random.choice(NAMES), a=a, b=b, c=c)] = solve(a, b, c)
        out += [Problem(f"{template}-{i}", template, *pair) for i, pair in enumerate(questions.items())]
    return tuple(out)


@dataclass(frozen=True, slots=True)
class SimulatedModel:
    """A simulated model that solves each problem with a certain probability. It computes nothing.

    The probability depends on the model's skill, on the template and, less, on the instance. What
    is hard is hard for all models: that is why paired comparisons see more than unpaired ones.
    """

    name: str
    skill: float
    """Log-odds of solving an average problem."""

    def probability(self, problem: Problem) -> float:
        """Return the chance that the simulated model answers a problem right, 0 to 1."""
        odds = self.skill + 1.6 * _normal(problem.template) + 0.7 * _normal(problem.id)
        odds += 0.6 * _normal(f"{self.name} {problem.template}")
        return float(1 / (1 + 2.718281828459045**-odds))

    def answer(self, problem: Problem, draw: int | str) -> str:
        """Return the model's text for a problem, right by its `probability`. The same `draw` gives the same text."""
        random = Random(f"{self.name} {problem.id} {draw}")
        right = random.random() < self.probability(problem)
        value = problem.answer if right else problem.answer + random.choice((-10, -2, -1, 1, 2, 10))
        return f"Let me think step by step. The answer is {value}."


def _normal(key: str) -> float:
    """Return a standard normal random number seeded by a text, always the same for the same text."""
    return Random(hashlib.blake2b(key.encode()).digest()).gauss(0, 1)


MODELS = tuple(
    SimulatedModel(f"sim-{name}", skill)
    for name, skill in zip("abcdefgh", (1.1, 0.8, 0.7, 0.6, 0.3, 0.0, -0.4, -1.0), strict=True)
)
"""Eight simulated models, the best first."""

PAIR = (MODELS[0], MODELS[2])
"""The two models that the demonstration compares in each harness: pairing shows their difference, bare numbers
do not."""

ENOUGH = (MODELS[5], MODELS[0])
"""Two models that half of the questions distinguish."""
