"""Records the calls that tests make to some functions of the original code.

The functions' code objects are replaced in place, so that a call is recorded whatever name it uses. The record holds
the arguments before the call; outcomes are found later, by a replay (``excise_replay.py``).
"""

import abc
import builtins
import contextlib
import importlib
import inspect
import itertools
import json
import os
import sys
import types

import excise_decode as decoding
import excise_doctests
import excise_values as values
from excise_trampolines import NAME, compile_trampoline, is_operator, is_plain_function

LAZY = (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)
"""What a call returns before it does anything: how that ends shows only when it is used."""
MAX_CALLS = 4000
"""Maximum number of recorded calls."""
MAX_WORK = 200_000
"""Values and characters that are encoded for the calls of one function, after which no more of its calls are recorded.
Objects of thousands of values, on which a method is called thousands of times, would take minutes."""
MAX_HISTORY = 20
"""Maximum number of earlier calls on an object; they are repeated to construct the object again."""
MAX_REPEATED = 500
"""Maximum number of objects of classes that stay which are constructed again while calls are recorded; one with a
recipe of thousands of characters counts once more for each thousand."""
MAX_RECIPE = 32 << 10
"""Maximum number of characters of a recorded call, and of what an object is constructed by: recipes hold those of other
objects, each of which may hold more of them."""
CHARACTERS_OF_VALUE = 16
"""Number of characters of an encoded value, on average."""
FOLLOWED = "followed"
"""Kind of the functions whose calls are noted in histories alone."""
RESULT = "result"
"""Kind of the functions that recorded calls return, such as what decorators make."""
MAX_RESULTS = 200
"""Maximum number of such functions whose calls are recorded."""
MAX_ARGUMENT = 1000
"""Maximum number of items of an iterator that is an argument."""


class Recorder:
    """Records calls. ``spans`` are file, first and last line of every removed definition, ``tests`` the files of tests,
    which are missing where calls are made again."""

    def __init__(self, spans=(), tests=()):
        self.spans, self.tests = spans, frozenset(tests)
        self.losing = self.tests.union(path for path, _, _ in spans)
        self.modules = set()
        self.classes, self.named = {}, {}
        self.originals = {}
        self.names = {}
        self.removed = set()
        self.inside = False
        self.calls = []
        self.seen = set()
        self.work = {}
        self.refused = {}
        self.index = {}
        self.by_test = {}
        self.ends = {}
        self.incomplete = set()
        self.recipes = {}
        self.sizes = {}
        self.size = 0
        self.keep = []
        self.staying = set()
        self.busy = set()
        self.repeated = 0
        self.results = 0
        self.watched = 0

    # --------------------------------------------------------------------------- replacing functions
    def watch(self, name):
        """Record calls of the named function, or of the public methods of the named class; return their number."""
        try:
            target = values.find(name)
        except (ImportError, AttributeError):
            return 0
        owner = values.find(name.rpartition(".")[0]) if "." in name.partition(":")[2] else None
        if isinstance(target, type):
            self.removed.add(target)
            found = 0
            for attribute, value in list(vars(target).items()):
                if attribute == "__init__" or not attribute.startswith("_") or is_operator(attribute):
                    found += self.replace(value, "%s.%s" % (name, attribute), target)
            return found
        if isinstance(owner, type):
            # a solution may name its private state freely
            (self.removed if name.endswith(".__init__") else self.staying).add(owner)
            return self.replace(vars(owner).get(name.rpartition(".")[2]), name, owner)
        return self.replace(target, name, None)

    def replace(self, value, name, owner):
        """Replace the code of a function; return 1, or 0 if it is no Python function or is recorded already."""
        kind = "function"
        if isinstance(value, (staticmethod, classmethod)):
            kind = type(value).__name__
            value = value.__func__
        elif isinstance(value, property):
            kind, value = "property", value.fget
        elif owner is not None:
            kind = "method"
        while not isinstance(value, types.FunctionType) and hasattr(value, "__wrapped__"):
            value = value.__wrapped__
        if not isinstance(value, types.FunctionType) or value.__code__ in self.names:
            return 0
        self.replace_code(value, name, kind, owner)
        return 1

    def follow(self):
        """Note the construction of objects of classes that stay but lose methods, and the calls of other methods.

        A solution may give such a class attributes of its own, so that objects cannot be made from their state alone.
        """
        self.staying = {cls for cls in self.staying if self.removed.isdisjoint(cls.__mro__)}
        for cls in {base for each in self.staying for base in each.__mro__}:
            if is_standard(str(cls.__module__)):
                continue
            for attribute, value in list(vars(cls).items()):
                is_seen = attribute == "__init__" or not attribute.startswith("_") or is_operator(attribute)
                if is_seen and is_plain_function(value) and value.__code__ not in self.names:
                    self.replace_code(value, "%s.%s" % (cls.__qualname__, attribute), FOLLOWED, cls)

    def replace_code(self, value, name, kind, owner):
        number = len(self.originals)
        original = types.FunctionType(
            value.__code__, value.__globals__, value.__name__, value.__defaults__, value.__closure__
        )
        original.__kwdefaults__ = value.__kwdefaults__
        self.originals[number] = (original, name, kind, owner)
        code = compile_trampoline(number, value.__code__.co_freevars)
        value.__code__ = code
        self.names[code] = name

    # -------------------------------------------------------------------------------------- calls
    def called(self, number, args, kwargs):
        original, name, kind, owner = self.originals[number]
        if self.inside:
            return original(*args, **kwargs)
        if kind == FOLLOWED:
            return self.followed(original, name, args, kwargs)
        is_result = kind == RESULT
        if len(self.calls) >= MAX_CALLS or self.work.get(name, 0) > MAX_WORK or (is_result and not owner.is_known()):
            if args:
                self.forget(args[0])  # its history is not complete any more
            self.incomplete.add(current_test())
            return original(*args, **kwargs)
        self.inside = True
        try:
            entry, number, args, kwargs = self.note(name, kind, args, kwargs, owner.origin() if is_result else {})
            if is_result:
                owner.add(entry)
        finally:
            self.inside = False
        made = name.endswith(".__init__") and owner in self.removed
        self.inside, returned = True, False
        try:
            value = original(*args, **kwargs)
            returned = True
            if entry is not None and self.is_own(value):
                self.follow_result(value, name, entry)
            return value
        finally:
            self.inside = False
            if entry is not None and not (returned and issubclass(type(value), LAZY)):
                self.ends.setdefault(number, set()).add(returned)
            if made and entry is not None and type(args[0]) is owner:
                self.note_made(args[0], name.rpartition(".")[0], entry)
            elif args and id(args[0]) not in self.busy:
                if entry is None:
                    self.forget(args[0])  # it received a call that cannot be repeated
                elif kind == "method":
                    self.note_history(args[0], name, entry["args"][1:], entry["kwargs"])

    def is_own(self, value):
        """Whether a value is a plain function that removed code defines within another one."""
        if self.results >= MAX_RESULTS or not is_plain_function(value) or value.__code__ in self.names:
            return False
        is_closure = value.__code__.co_flags & inspect.CO_NESTED and not inspect.isgeneratorfunction(value)
        return bool(is_closure) and not self.may_travel(value)

    def follow_result(self, value, name, entry):
        """Record the calls of a function that a recorded call returned."""
        self.results += 1
        if not hasattr(value, "__wrapped__"):  # whoever asks for its parameters, such as pytest, gets those it has
            with contextlib.suppress(ValueError, TypeError):
                value.__signature__ = inspect.signature(value)
        self.replace_code(value, name + "()", RESULT, Returned(entry))

    def note_history(self, receiver, name, args, kwargs):
        """Add a call to the history of an object."""
        recipe = self.recipes.get(id(receiver))
        if recipe is not None:
            recipe[3].append([name.rpartition(".")[2], args, kwargs])
            self.measure(receiver, recipe[3][-1])

    def note_made(self, value, name, entry):
        """Note how an object was constructed."""
        self.recipes[id(value)] = [name, entry["args"], entry["kwargs"], []]
        self.sizes[id(value)] = 0
        self.keep.append(value)
        self.measure(value, self.recipes[id(value)])

    def measure(self, value, part):
        """Add the size of a part to that of an object's recipe, and forget a recipe that is too large."""
        self.sizes[id(value)] += len(json.dumps(part))
        if self.sizes[id(value)] > MAX_RECIPE:
            self.forget(value)

    def forget(self, value):
        """Forget how an object was constructed."""
        self.recipes.pop(id(value), None)

    def followed(self, original, name, args, kwargs):
        """Make a call of a method that stays, and note it in the history of its object.

        Calls that a method makes on its own object are repeated by the method itself.
        """
        is_init = name.endswith(".__init__")
        if not args or id(args[0]) in self.busy or not (is_init or id(args[0]) in self.recipes):
            return original(*args, **kwargs)
        receiver, entry = args[0], None
        self.inside = True
        try:
            args = [receiver, *map(self.readable, args[1:])]
            kwargs = {key: self.readable(value) for key, value in kwargs.items()}
            if self.work.get(name, 0) <= MAX_WORK and len(self.keep) < MAX_CALLS:
                entry = self.entry_of(name, args[1:], kwargs)
        except Exception:  # it cannot be repeated
            entry = None
        finally:
            self.inside = False
        self.busy.add(id(receiver))
        try:
            return original(*map(passed_on, args), **{key: passed_on(value) for key, value in kwargs.items()})
        finally:
            self.busy.discard(id(receiver))
            if entry is None:
                self.forget(receiver)
            elif is_init:
                self.note_made(receiver, "%s:%s" % (type(receiver).__module__, type(receiver).__qualname__), entry)
            else:
                self.note_history(receiver, name, entry["args"], entry["kwargs"])

    def entry_of(self, name, args, kwargs):
        """Encoded arguments of a call. Raises :class:`excise_values.Unserialisable`."""
        self.named = {}
        return {
            "args": [self.encode(value, name) for value in args],
            "kwargs": [[key, self.encode(value, name)] for key, value in kwargs.items()],
        }

    def note(self, name, kind, args, kwargs, more):
        """Record a call, with what there is ``more`` to say of it.

        Return it with its number, both ``None`` if it cannot be recorded, and the arguments to pass on.
        Iterator arguments are read ahead, and passed on as iterators over the same items.
        """
        number = None
        args = [self.readable(value) for value in args]
        kwargs = {key: self.readable(value) for key, value in kwargs.items()}
        is_init = name.endswith(".__init__") and kind == "method"
        try:
            recorded = args[1:] if is_init or kind == "classmethod" else args
            entry = {
                "name": name.rpartition(".")[0] if is_init else name,
                "kind": "class" if is_init else kind,
                **self.entry_of(name, recorded, kwargs),
                **more,
            }
            text = json.dumps(entry)
            classes = self.classes_in(text)
            if classes:
                entry["classes"] = classes
                text = json.dumps(entry)
            self.count(name, len(text))
            if len(text) > MAX_RECIPE:
                raise values.Unserialisable("too large")
            if text not in self.seen:
                self.seen.add(text)
                self.index[text] = len(self.calls)
                self.calls.append(json.loads(text))
            number = self.index[text]
            self.by_test.setdefault(current_test(), {})[number] = None
        except values.Unserialisable as error:
            self.refuse(str(error))
            entry = None
        except Exception as error:  # raised by a property or comparison of the project
            self.refuse(type(error).__name__)
            entry = None
        passed = [passed_on(value) for value in args]
        return entry, number, passed, {key: passed_on(value) for key, value in kwargs.items()}

    def classes_in(self, text):
        """The classes of tests that an encoded call, or one of these classes, names."""
        found, texts = {}, [text]
        while texts:
            text = texts.pop()
            for name, node in self.classes.items():
                if name not in found and '"%s"' % name in text:
                    found[name] = node
                    texts.append(json.dumps(node))
        return found

    def refuse(self, why):
        self.incomplete.add(current_test())
        self.refused[why] = self.refused.get(why, 0) + 1

    def readable(self, value):
        if values.is_iterator(value):
            ahead = list(itertools.islice(value, MAX_ARGUMENT + 1))
            return BufferedIterator(ahead, value)
        return value

    def encode(self, value, name):
        """Encode an argument of the named function."""
        if type(value) is BufferedIterator:
            if len(value.items) > MAX_ARGUMENT:
                raise values.Unserialisable("endless iterator")
            return ["it", [self.encode(item, name) for item in value.items]]
        encoder = values.Encoder(self.is_removed, self.made, self.may_travel, self.is_of_tests)
        encoder.losing = self.losing
        encoder.named = self.named
        self.size = 0
        try:
            node = encoder.encode(value)
        finally:
            self.count(name, encoder.nodes + self.size // CHARACTERS_OF_VALUE)
        self.modules |= encoder.modules
        self.classes.update(encoder.classes)
        return node

    def count(self, name, work):
        self.work[name] = self.work.get(name, 0) + work

    def may_travel(self, function):
        """Whether a function's code may be part of a record: not that of a removed definition."""
        code = function.__code__
        return code not in self.names and not any(
            code.co_filename == path and first <= code.co_firstlineno <= last for path, first, last in self.spans
        )

    def is_of_tests(self, thing):
        """Whether a function, or a class of a plain kind, is defined in a file of tests, or says so."""
        file = getattr(sys.modules.get(str(thing.__module__)), "__file__", None)
        if isinstance(thing, type):
            return type(thing) in (type, abc.ABCMeta) and file in self.tests
        return file in self.tests or thing.__code__.co_filename in self.tests

    def is_removed(self, cls):
        return False

    def made(self, value):
        """The recipe to construct an object again; ``None`` if it is made from its state.

        Objects of removed classes are never made from their state.
        """
        recipe = self.recipes.get(id(value))
        node = made_of_nothing(value) if not self.is_of_tests(type(value)) else None  # its class is carried
        if recipe is not None and len(recipe[3]) <= MAX_HISTORY and self.size + self.sizes[id(value)] <= MAX_RECIPE:
            self.size += self.sizes[id(value)]
            node = ["made", *json.loads(json.dumps(recipe))]
        if not self.removed.isdisjoint(type(value).__mro__):
            if node is None:
                raise values.Unserialisable("object of a removed class")
            return node
        return node if node is not None and self.can_repeat(node, value) else None

    def can_repeat(self, node, value):
        """Whether an object that is constructed by a recipe has the same state, as far as this can be told."""
        self.repeated += 1 + self.sizes.get(id(value), 0) // 1000
        if self.repeated > MAX_REPEATED:
            return False
        try:
            made = decoding.decode(node)
        except Exception:
            return False
        try:
            return values.Encoder().encode(made) == values.Encoder().encode(value)
        except Exception:  # objects without a visible state: the replays will tell
            return True


def made_of_nothing(value):
    """The recipe of an object without state whose class leaves making it to Python; ``None`` for others."""
    kind = type(value)
    is_plain = isinstance(kind, type) and kind.__init__ is object.__init__ and kind.__new__ is object.__new__
    if not is_plain or kind.__module__ in values.MADE_IN_C or values.state_of(value) != {}:
        return None
    name = "%s:%s" % (kind.__module__, kind.__qualname__)
    return ["made", name, [], [], []] if values.find_or_none(name) is kind else None


def current_test():
    """The id of the test that runs; empty if none does."""
    return os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0]


class Returned:
    """A function that a recorded call returned: this call, and those of the function so far, which it may count."""

    def __init__(self, made):
        self.made, self.before = made, []

    def is_known(self):
        """Whether its calls can be repeated: none before them was left out, and they are not too many."""
        return self.before is not None and len(self.before) <= MAX_HISTORY

    def add(self, entry):
        """Add a call; ``None`` for one that cannot be repeated."""
        self.before = None if entry is None else [*self.before, [entry["args"], entry["kwargs"]]]

    def origin(self):
        """What a recorded call of it says of where it comes from."""
        return {"made": self.made, "before": self.before}


class BufferedIterator:
    """An iterator whose first items were read ahead."""

    def __init__(self, items, rest):
        self.items = items
        self.rest = rest


def passed_on(value):
    """An argument as the original function gets it."""
    if type(value) is BufferedIterator:
        return itertools.chain(value.items, value.rest)
    return value


def is_standard(module):
    """Whether a module is one of the standard library; Python before 3.10 does not list these."""
    top = module.partition(".")[0]
    if hasattr(sys, "stdlib_module_names"):
        return top in sys.stdlib_module_names
    file = getattr(sys.modules.get(top), "__file__", None)
    library = os.path.dirname(os.__file__) + os.sep
    return top in sys.builtin_module_names or (
        file is not None and file.startswith(library) and "-packages" + os.sep not in file
    )


def start(request):
    """Import the requested modules and record calls from now on; return the recorder."""
    root = request["root"]
    spans = [(os.path.join(root, path), first, last) for path, first, last in request["spans"]]
    recorder = Recorder(spans, [os.path.join(root, path) for path in request.get("tests", ())])
    setattr(builtins, NAME, recorder.called)
    for module in request["modules"]:
        try:
            importlib.import_module(module)
        except Exception:  # its tests will fail
            continue
    recorder.watched = sum(recorder.watch(name) for name in request["names"])
    recorder.follow()
    return recorder


def finish(recorder, request, watched=None):
    """Record the examples of docstrings, and report all that was recorded, with the report of a watch."""
    excise_doctests.record_examples(recorder)
    recorder.inside = True
    root = request["root"]
    folders = [os.path.relpath(path, root) for path in sys.path if is_inside(path, root)]
    found = {"watched": recorder.watched, "calls": recorder.calls, "refused": recorder.refused}
    known = set(recorder.by_test).difference(recorder.incomplete, [""])
    found["tests"] = {test: list(calls) for test, calls in recorder.by_test.items() if test in known}
    found["returned"] = {number: True in ends for number, ends in recorder.ends.items() if len(ends) == 1}
    if watched is not None:
        found["uses"] = watched
    with open(request["report"], "x") as file:
        json.dump({**found, "modules": sorted(recorder.modules), "folders": folders}, file)


def is_inside(path, root):
    """Whether a path is a folder of the checkout."""
    return os.path.isabs(path) and (path + "/").startswith(root + "/")
