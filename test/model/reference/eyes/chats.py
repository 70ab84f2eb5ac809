"""Pictures of coloured shapes as numbers, and chats about them: questions of patterns, with the only right answer to each."""
import random

import numpy as np

IMAGE, PATCH, SIDE = 112, 14, 8
VECTORS = SIDE * SIDE
MOST = 6  # shapes of a picture
SHAPES = ["circle", "square", "triangle", "star", "cross"]
COLOURS = {"red": (220, 30, 30), "green": (30, 160, 50), "blue": (30, 60, 220), "yellow": (245, 220, 40), "orange": (245, 135, 20),
           "purple": (140, 40, 170), "pink": (250, 150, 195), "black": (15, 15, 15), "white": (245, 245, 245), "grey": (128, 128, 128)}
NAMES = list(COLOURS)
GROUNDS = ["white", "white", "black", "grey", "blue", "yellow", "green", "pink"]
PLACES = ["at the top left", "at the top", "at the top right", "on the left", "in the middle", "on the right", "at the bottom left",
          "at the bottom", "at the bottom right"]
NUMBERS = ["no", "one", "two", "three", "four", "five", "six"]


def draw(r):
    """A picture as numbers: [MOST, 9] of shape, colour's name, its red, green and blue, middle, size and turn; and its ground."""
    ground = r.choice(GROUNDS)
    count = r.choices(range(MOST + 1), [3, 26, 25, 19, 13, 8, 6])[0]
    shapes = r.sample(SHAPES, r.choice([1, 2, 3, 5, 5]))
    others = [name for name in NAMES if name != ground and {name, ground} != {"grey", "white"}]
    colours = r.sample(others, r.choice([1, 2, 3, len(others), len(others)]))
    is_big = count == 1 and r.random() < 0.4
    jitter = lambda value: min(255.0, max(0.0, value + r.uniform(-14, 14)))
    things = []
    for cell in sorted(r.sample(range(9), count)):
        size, reach = (r.uniform(18, 50), 5.0) if is_big else (r.uniform(9, 17), 5.0)
        cell = 4 if is_big else cell
        middle = [IMAGE / 6 * (2 * at + 1) + r.uniform(-reach, reach) for at in (cell % 3, cell // 3)]
        colour = r.choice(colours)
        things.append((r.choice(shapes), colour, [jitter(v) for v in COLOURS[colour]], middle, size, r.uniform(-0.25, 0.25), cell))
    numbers = np.full((MOST, 9), -1, np.float32)
    for row, (shape, colour, rgb, middle, size, turn, _) in zip(numbers, things):
        row[:] = [SHAPES.index(shape), NAMES.index(colour), *rgb, *middle, size, turn]
    around = np.array([jitter(v) for v in COLOURS[ground]] + [r.uniform(0.2, 1.2), r.choice([0, 0, 2, 5])], np.float32)
    return {"numbers": numbers, "ground": around, "name": ground, "things": [(s, c, cell) for s, c, _, _, _, _, cell in things]}


def a(name):
    return ("an " if name[0] in "aeiou" else "a ") + name


def listed(parts):
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]


def several(kind):
    return kind + ("es" if kind.endswith("ss") else "s")


def counted(number, kind):
    return f"There is one {kind}." if number == 1 else f"There are {NUMBERS[number]} {several(kind)}."


def of_all(r, picture, _):
    which = r.choice(["the picture", "this picture", "the image", "this image"])
    question = r.choice(["What is in {w}?", "What is in {w}?", "What do you see in {w}?", "Describe {w}.", "What does {w} show?", "What do you see?",
                         "What is this?", "What can you see in {w}?", "Describe what you see.", "What is to be seen in {w}?"]).format(w=which)
    if not picture["things"]:
        return question, f"I see nothing but a {picture['name']} background.".replace("a orange", "an orange")
    return question, "I see " + listed([a(f"{c} {s}") for s, c, _ in picture["things"]]) + "."


def only(values):
    return [value for value in values if values.count(value) == 1]


def of_colour(r, picture, spelled):
    alone = only([s for s, _, _ in picture["things"]])
    if not alone:
        return None
    if len(picture["things"]) == 1 and r.random() < 0.4:
        return r.choice([f"What {spelled} is it?", f"What {spelled} is the shape?", f"Which {spelled} does it have?"]), f"It is {picture['things'][0][1]}."
    shape = r.choice(alone)
    colour = next(c for s, c, _ in picture["things"] if s == shape)
    return r.choice([f"What {spelled} is the {shape}?", f"What {spelled} is the {shape}?", f"Which {spelled} is the {shape}?", f"What is the {spelled} of the {shape}?",
                     f"Which {spelled} does the {shape} have?"]), f"The {shape} is {colour}."


def of_shape(r, picture, _):
    alone = only([c for _, c, _ in picture["things"]])
    if not alone:
        return None
    if len(picture["things"]) == 1 and r.random() < 0.4:
        return r.choice(["What shape is it?", "Which shape is this?", "What shape is this?", "What shape do you see?"]), f"It is {a(picture['things'][0][0])}."
    colour = r.choice(alone)
    shape = next(s for s, c, _ in picture["things"] if c == colour)
    return r.choice([f"What shape is {colour}?", f"Which shape is {colour}?", f"What is {colour}?", f"What is the {colour} shape?"]), f"The {shape} is {colour}."


def of_count(r, picture, _):
    kind = r.random()
    ask = r.choice(["How many {k} are there?", "How many {k} are there?", "How many {k} do you see?", "How many {k} are in the picture?",
                    "How many {k} are in the image?", "How many {k} can you see?", "Count the {k}."])
    if kind < 0.4:
        return ask.format(k="shapes"), counted(len(picture["things"]), "shape")
    if kind < 0.75:
        shape = r.choice([s for s, _, _ in picture["things"]] + SHAPES)
        return ask.format(k=several(shape)), counted(sum(s == shape for s, _, _ in picture["things"]), shape)
    colour = r.choice([c for _, c, _ in picture["things"]] * 2 + [r.choice(NAMES)])
    return ask.format(k=f"{colour} shapes"), counted(sum(c == colour for _, c, _ in picture["things"]), f"{colour} shape")


def of_place(r, picture, _):
    kinds = [(s, c) for s, c, _ in picture["things"]]
    alone = only(kinds)
    if not alone:
        return None
    shape, colour = r.choice(alone)
    where = next(PLACES[cell] for s, c, cell in picture["things"] if (s, c) == (shape, colour))
    name = shape if [s for s, _ in kinds].count(shape) == 1 and r.random() < 0.5 else f"{colour} {shape}"
    return r.choice([f"Where is the {name}?", f"Where is the {name}?", f"Where do you see the {name}?", f"Where in the picture is the {name}?"]), f"The {name} is {where}."


def at_place(r, picture, _):
    cell = r.choice([cell for _, _, cell in picture["things"]] + [r.randrange(9)])
    found = [(s, c) for s, c, own in picture["things"] if own == cell]
    question = r.choice([f"What is {PLACES[cell]}?", f"What do you see {PLACES[cell]}?", f"Which shape is {PLACES[cell]}?"])
    return question, f"There is {a(found[0][1] + ' ' + found[0][0]) if found else 'nothing'} {PLACES[cell]}."


def of_being(r, picture, _):
    kinds = [(s, c) for s, c, _ in picture["things"]]
    if kinds and r.random() < 0.5:
        shape, colour = r.choice(kinds)
    else:
        shape, colour = r.choice([s for s, _ in kinds] + SHAPES), r.choice([c for _, c in kinds] + NAMES)
    name = r.choice([f"{colour} {shape}", f"{colour} {shape}", shape])
    there = any(name in (s, f"{c} {s}") for s, c in kinds)
    question = r.choice([f"Is there {a(name)}?", f"Is there {a(name)} in the picture?", f"Do you see {a(name)}?", f"Can you see {a(name)}?"])
    return question, f"Yes, there is {a(name)}." if there else f"No, there is no {name}."


def of_ground(r, picture, spelled):
    return r.choice([f"What {spelled} is the background?", f"What is the {spelled} of the background?", f"Which {spelled} does the background have?"]), f"The background is {picture['name']}."


def of_order(r, picture, _):
    kinds = [(s, c) for s, c, _ in picture["things"]]
    alone = only(kinds)
    if len(alone) < 2:
        return None
    one, other = r.sample(alone, 2)
    at = {(s, c): cell for s, c, cell in picture["things"]}
    word, axis, sign = r.choice([("left of", 0, 1), ("right of", 0, -1), ("above", 1, 1), ("below", 1, -1)])
    part = lambda cell: cell % 3 if axis == 0 else cell // 3
    difference = (part(at[other]) - part(at[one])) * sign
    if difference == 0:
        return None
    names = [f"{c} {s}" for s, c in (one, other)]
    return f"Is the {names[0]} {word} the {names[1]}?", f"{'Yes' if difference > 0 else 'No'}, the {names[0]} is {'' if difference > 0 else 'not '}{word} the {names[1]}."


KINDS = [of_all, of_colour, of_shape, of_count, of_place, at_place, of_being, of_ground, of_order]
SHARES = [6, 5, 4, 8, 7, 4, 5, 2, 5]


def asked(r, picture):
    while True:
        kind = r.choices(range(len(KINDS)), SHARES)[0]
        said = KINDS[kind](r, picture, r.choice(["colour", "colour", "color"]))
        if said:
            question, answer = said
            if r.random() < 0.1:
                question = question[0].lower() + question[1:]
            if r.random() < 0.05:
                question = question.rstrip("?.")
            return kind, question, answer


MARK = "<|pad|>"


def shown(r, question):
    return f"{MARK}\n{question}" if r.random() < 0.6 else f"{question}\n{MARK}"


def chat(r, images):
    """Pictures, and the text in parts: (words, kind of the question that they answer, or -1)."""
    pictures = [draw(r) for _ in range(images)]
    parts, head = [], ""
    if r.random() < 0.08:
        head = "<|im_start|>system\n" + r.choice(["You are a helpful assistant.", "You are Braid, a small demo model.", "You describe pictures."]) + "<|im_end|>\n"
    def turn(content, kind, answer):
        parts.append((("" if parts else head) + ("\n" if parts else "") + f"<|im_start|>user\n{content}<|im_end|>\n<|im_start|>assistant\n", -1))
        parts.append((answer + "<|im_end|>", kind))
    if images == 2 and r.random() < 0.4:
        number = r.randrange(2)
        kind, question, answer = asked(r, pictures[number])
        about = r.choice(["In the {n} picture: {q}", "The {n} picture: {q}", "{n} image: {q}"]).format(n=["first", "second"][number], q=question)
        turn(f"{MARK}\n{MARK}\n{about}" if r.random() < 0.6 else f"{about}\n{MARK}\n{MARK}", kind, answer)
        return pictures, parts
    for picture in pictures:
        for i in range(r.choice([1, 2, 3]) if images == 1 else 1):
            kind, question, answer = asked(r, picture)
            turn(shown(r, question) if i == 0 else question, kind, answer)
    return pictures, parts


class Batches:
    """Made by worker processes, from a seed each. texts: chats without pictures, in parts as chat() has them."""

    def __init__(self, tokenizer, texts):
        self.tokenizer, self.texts = tokenizer, texts

    def __call__(self, job):
        """Tokens [n, longest] with images' places as MARK's id, the kind of answer that each is of, and the pictures."""
        seed, n, images = job
        r = random.Random(seed)
        chats = [chat(r, images) if images else ([], r.choice(self.texts)) for _ in range(n)]
        words = [words for _, parts in chats for words, _ in parts]
        coded = iter(self.tokenizer.encode_batch(words))
        rows, kinds = [], []
        for _, parts in chats:
            row, kind_row = [], []
            for _, kind in parts:
                for token in next(coded).ids:
                    times = VECTORS if token == 3 else 1
                    row += [token] * times
                    kind_row += [kind] * times
            rows.append(row)
            kinds.append(kind_row)
        longest = (max(map(len, rows)) + 15) // 16 * 16
        tokens, of = np.zeros((n, longest), np.int16), np.full((n, longest), -1, np.int8)
        for i, (row, kind_row) in enumerate(zip(rows, kinds)):
            tokens[i, :len(row)], of[i, :len(row)] = row, kind_row
        pictures = [p for ps, _ in chats for p in ps] or [draw(r)]
        return tokens, of, np.stack([p["numbers"] for p in pictures]), np.stack([p["ground"] for p in pictures])
