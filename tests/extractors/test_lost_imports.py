"""Imports are taken out of imported modules exactly where a fresh import would differ in nothing else."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType

import pytest

from .inside_programs import load

load("excise_imports")
swap = load("excise_swap")
PACKAGE = "lost_imports_package"
FILES = {
    "__init__.py": "from .core import first\nfrom . import tools\n",
    "core.py": "import re\n\n\ndef first(x):\n    return x\n\n\ndef second(x):\n    return x\n",
    "tools.py": """# Tools.
from __future__ import annotations

import functools
import os.path
import re
from collections import OrderedDict, defaultdict
from typing import TYPE_CHECKING
from .core import first, second  # both

if TYPE_CHECKING:
    from .core import third
import xml.dom
import string as texts


def text(value):
    import re
    return re.escape(value)


def pairs(values):
    yield from defaultdict(list, values)


class Plain:
    def items(self):
        yield from OrderedDict()
""",
}
Adapt = Callable[..., ModuleType]


@pytest.fixture
def adapt(tmp_path: Path) -> Iterator[Adapt]:
    """Imports a package, replaces parts of the source of ``tools.py``, and adapts the imported module."""
    root = tmp_path.resolve()
    sys.path.insert(0, str(root))

    def change(
        *replacements: tuple[str, str], others: Mapping[str, str] | None = None, texts: Mapping[str, str] | None = None
    ) -> ModuleType:
        files = {**FILES, **(others or {})}
        for name, text in {**files, **(texts or {})}.items():
            (root / PACKAGE / name).parent.mkdir(exist_ok=True)
            (root / PACKAGE / name).write_text(text)
        executed = swap.Executed()
        executed.TOOL = 5  # coverage may use the others
        executed.start()
        for name in sorted(files):
            importlib.import_module(f"{PACKAGE}.{name}".removesuffix(".py").removesuffix(".__init__"))
        executed.stop()
        code = swap.LoadedCode(str(root), executed.keys)
        text, path = files["tools.py"], root / PACKAGE / "tools.py"
        for old, new in replacements:
            assert text.count(old) == 1
            text = text.replace(old, new)
        path.write_text(text)
        code.prepare(str(path))
        code.adapt(str(path))
        return importlib.import_module(f"{PACKAGE}.tools")

    yield change
    sys.path.remove(str(root))
    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
        del sys.modules[name]


def names_of(module: ModuleType) -> set[str]:
    return {name for name in vars(module) if not name.startswith("__")}


@pytest.mark.parametrize(
    ("changes", "lost"),
    [
        ([("import functools\n", "")], {"functools"}),
        ([("import string as texts\n", "")], {"texts"}),
        ([("OrderedDict, defaultdict", "defaultdict")], {"OrderedDict"}),
        ([("first, second  # both", "second")], {"first"}),
        ([("from .core import first, second  # both\n", "")], {"first", "second"}),
        ([("    from .core import third", "    pass")], set()),
        ([("import functools\n", ""), ("    return re.escape(value)", "    return value")], {"functools"}),
    ],
)
def test_the_module_is_as_a_fresh_import_makes_it(adapt: Adapt, changes: list[tuple[str, str]], lost: set[str]) -> None:
    module = adapt(*changes)
    left = names_of(module)
    sys.path_importer_cache.clear()
    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
        del sys.modules[name]
    assert left == names_of(importlib.import_module(f"{PACKAGE}.tools"))
    assert lost.isdisjoint(left)
    assert len(left) == 14 - len(lost)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("import functools\n", "import functools\nimport json\n", "have come"),
        ("OrderedDict, defaultdict", "defaultdict, OrderedDict", "have moved"),
        ("from typing import TYPE_CHECKING\n", "", "use TYPE_CHECKING"),
        ("import xml.dom\n", "", "only|earlier"),
        ("import os.path\n", "x = 1\n", "something else"),
        ("from __future__ import annotations\n", "", "no import"),
    ],
)
def test_what_is_more_than_a_lost_name_is_refused(adapt: Adapt, old: str, new: str, reason: str) -> None:
    with pytest.raises(swap.NeedsImport, match=reason):
        adapt((old, new))


@pytest.mark.parametrize(
    ("others", "reason"),
    [
        ({"other.py": "from .tools import functools\n"}, "imports functools from here"),
        ({"other.py": "from .tools import *\n"}, "imports functools from here"),
        ({"other.py": "from . import tools\nuse = tools.functools.partial\n"}, "uses a functools"),
        ({"other.py": "import functools\n\n@functools.lru_cache\ndef f(): pass\n"}, ""),
        ({"other.py": "import json\nuse = json.functools if 0 else 1\ndel json\n"}, ""),
        ({"other.py": "from . import tools\nuse = tools.functools if 0 else 1\ndel tools\n"}, "uses a functools"),
        ({"other.py": "from . import tools\n\ndef f(): return tools.functools\n"}, ""),
        ({"other.py": "from .tools import *\nimport functools\n"}, "imports functools from here"),
        ({"other.py": "from .tools import *\nfrom .more import *\n", "more.py": "import functools\n"}, ""),
        ({"__init__.py": "from . import core\n"}, ""),
        ({"other.py": "import inspect\nfrom . import tools\nuse = inspect.getmembers(tools)\n"}, "may look at"),
        ({"other.py": "import inspect\nuse = inspect.getmembers(inspect)\n"}, ""),
        ({"other.py": "from . import tools\n\ndef f(): return tools.functools\n\nf()\n"}, "uses a functools"),
        ({"other.py": "from . import tools\nuse = hasattr(tools, 'functools')\n"}, "has the text functools"),
        ({"other.py": "import functools\n__all__ = ['functools']\n"}, ""),
        ({"other.py": "from . import tools\nuse = list(globals())\n"}, ""),
        ({"other.py": "from . import tools\nuse = list(vars(tools))\n"}, "may look at"),
        ({"other.py": "import inspect\n\ndef f(): return inspect.getsource(f)\n"}, "asks for line numbers"),
        ({"other.py": "import sys\n\ndef f(): return sys._getframe().f_lineno\n"}, ""),
        ({"tools.py": FILES["tools.py"] + "\ndef f(x): return x.f_lineno\n"}, "asks for line numbers"),
        ({"tools.py": FILES["tools.py"].replace("import re\n", "import re\nfrom .more import *\n", 1),
          "more.py": "import functools\n"}, "more than one"),
        ({"tools.py": FILES["tools.py"] + "\ndef change(): global functools; functools = 1\n"}, "more than one"),
        ({"tools.py": FILES["tools.py"] + "\nclass A:\n    x: 'list[functools.partial]' = 1\n"}, "may use functools"),
        ({"tools.py": FILES["tools.py"] + "\nfunctools = None\n"}, "more than one"),
        ({"tools.py": FILES["tools.py"] + "\ndef change():\n    global functools\n"}, "more than one"),
        ({"tools.py": FILES["tools.py"] + "\n__all__ = ['functools']\n"}, "may use functools"),
        ({"tools.py": FILES["tools.py"] + "\nnames = list(globals())\n"}, "may use functools"),
        ({"tools.py": FILES["tools.py"] + "\nglobals()['more'] = 1\n"}, "may use functools"),
        ({"other.py": "globals()['more'] = 1\nfrom . import tools\n"}, ""),
        ({"tools.py": FILES["tools.py"] + "\nuse = globals()['functools']\n"}, "may use functools"),
        ({"tools.py": FILES["tools.py"] + "\ndef typed(x: functools.partial): pass\n"}, "may use functools"),
    ],
)  # fmt: skip
def test_what_takes_a_name_when_it_is_imported_is_a_reason(adapt: Adapt, others: dict[str, str], reason: str) -> None:
    change = ("import functools\n", "")
    if not reason:
        assert "functools" not in vars(adapt(change, others=others))
        return
    with pytest.raises(swap.NeedsImport, match=reason):
        adapt(change, others=others)


@pytest.mark.parametrize(
    ("init", "reason"),
    [
        ("from . import tools\n", "core may be imported earlier"),
        ("from . import tools\nfrom . import core\n", "core may be imported earlier"),
        ("try:\n    from . import core\nfinally:\n    from . import tools\n", "core may be imported here only"),
        ("import json\nfrom . import core\nfrom . import tools\n", ""),
    ],
)
def test_a_module_of_the_project_stays_imported_only_where_a_package_imports_it_before(
    adapt: Adapt, init: str, reason: str
) -> None:
    change = ("from .core import first, second  # both\n", "")
    files = {"__init__.py": init, "core.py": FILES["core.py"] + "\n\nprint()\n"}
    if not reason:
        assert "first" not in vars(adapt(change, others=files))
        return
    with pytest.raises(swap.NeedsImport, match=reason):
        adapt(change, others=files)


QUIET = "import re\n\nWORD = re.compile('x')\n\n\n@property\ndef first(x): return x\n\n\ndef second(x): return x\n"


@pytest.mark.parametrize(
    ("others", "reason"),
    [
        ({}, ""),
        ({"__init__.py": "from . import tools, other\n", "other.py": "from .core import first\n"}, ""),
        ({"__init__.py": "from . import tools\n", "other.py": "from .core import first\n"}, "earlier"),
        ({"__init__.py": "from . import tools\n"}, "core may be imported earlier"),
        ({"__init__.py": "from . import tools\nif tools:\n    from . import core\n"}, "earlier"),
        ({"core.py": QUIET + "import atexit\n"}, ""),
        ({"core.py": QUIET + "import pytest\n"}, "earlier"),
        ({"core.py": QUIET + "from . import other\n", "other.py": ""}, "earlier"),
        ({"core.py": QUIET + "re.word = WORD\n"}, "earlier"),
        ({"core.py": QUIET + "print(WORD)\n"}, "earlier"),
        ({"core.py": QUIET + "from sys import path as p\np += ['x']\n"}, "earlier"),
        ({"core.py": QUIET + "list(map(print, [1]))\n"}, "earlier"),
        ({"core.py": QUIET + "import functools\nfunctools.partial(print, 1)()\n"}, "earlier"),
        ({"core.py": QUIET + "import decimal\ndecimal.setcontext(decimal.Context(prec=5))\n"}, "earlier"),
        ({"core.py": QUIET + "import sys\nx = 'a' in sys.modules\n"}, "earlier"),
        ({"other.py": "from . import tools\nimport lost_imports_package as p\nx = hasattr(p, 'core')\n"}, "earlier"),
        ({"other.py": "import lost_imports_package as p\nx = p.core if 0 else 1\n"}, "earlier"),
        ({"core.py": QUIET + "import atexit\n\n\n@atexit.register\ndef third(): pass\n"}, "earlier"),
    ],
)  # fmt: skip
def test_when_a_module_is_imported_makes_no_difference_if_it_does_nothing(
    adapt: Adapt, others: dict[str, str], reason: str
) -> None:
    change = ("from .core import first, second  # both\n", "")
    files = {"__init__.py": "from . import tools\nfrom .core import first\n", "core.py": QUIET, **others}
    if not reason:
        assert "first" not in vars(adapt(change, others=files))
        return
    with pytest.raises(swap.NeedsImport, match=reason):
        adapt(change, others=files)


def test_a_function_becomes_a_generator_only_if_nothing_may_have_looked_at_it(adapt: Adapt) -> None:
    module = adapt(
        ("    yield from defaultdict(list, values)", "    raise NotImplementedError"),
        ("        yield from OrderedDict()", "        return 3"),
    )
    assert module.Plain().items() == 3
    with pytest.raises(NotImplementedError):
        module.pairs(())


@pytest.mark.parametrize(
    ("more", "body", "reason"),
    [
        ("\ntable = [pairs]\n", "    yield from defaultdict(list, values)", "may look at pairs"),
        ("\nlist(vars())\n", "    yield from defaultdict(list, values)", "may look at pairs"),
        ("\ntable = [Plain.items]\n", "        yield from OrderedDict()", "seen the class of items"),
        ("\nclass More:\n    items = 'items'\n", "        yield from OrderedDict()", "may look at items"),
    ],
)
def test_what_looks_at_a_generator_is_a_reason(adapt: Adapt, more: str, body: str, reason: str) -> None:
    with pytest.raises(swap.NeedsImport, match=reason):
        adapt((body, "        return 3"), others={"tools.py": FILES["tools.py"] + more})


def test_what_takes_a_generator_under_another_name_is_a_reason(adapt: Adapt) -> None:
    other = {"other.py": "from .tools import pairs as made\nuse = [made]\n"}
    with pytest.raises(swap.NeedsImport, match="may look at pairs"):
        adapt(("    yield from defaultdict(list, values)", "    return 3"), others=other)


def test_a_file_that_is_no_python_is_a_reason_and_no_end_of_the_server(adapt: Adapt) -> None:
    """Code may be compiled with the name of a template, whose text is another one."""
    made = (
        "from pathlib import Path\nf = str(Path(__file__).with_name('page.html'))\nexec(compile('x = 1', f, 'exec'))\n"
    )
    template = "<p>{{ functools }}</p>\n"
    with pytest.raises(swap.NeedsImport, match="cannot be parsed"):
        adapt(("import functools\n", ""), others={"other.py": made}, texts={"page.html": template})


def test_a_coroutine_stays_one(adapt: Adapt) -> None:
    """One that nobody waits for gives a warning when it is collected, in whichever test that is."""
    text = FILES["tools.py"] + "\n\nasync def later(x):\n    yield x\n"
    with pytest.raises(swap.NeedsImport, match="another kind"):
        adapt(("    yield x\n", "    return x\n"), others={"tools.py": text})


def test_classes_that_are_told_of_their_subclasses_are_a_reason(adapt: Adapt) -> None:
    text = "class Base:\n    def __init_subclass__(cls): pass\n\n\n" + FILES["tools.py"].replace(
        "Plain:", "Plain(Base):"
    )
    text = text.replace("from __future__ import annotations\n", "")
    with pytest.raises(swap.NeedsImport, match="when its class was defined"):
        adapt(("        yield from OrderedDict()", "        return 3"), others={"tools.py": text})


def test_distant_changes_are_found_in_files_full_of_equal_lines() -> None:
    old = [line for number in range(3000) for line in ("\n", f"x{number % 7}\n", "\n", f"unique {number}\n")]
    new = [line for line in old[2:] if line not in {"unique 1500\n", "unique 2999\n"}] + ["more\n"]
    found = list(swap.differences(old, new))
    assert sum(i2 - i1 for i1, i2, _, _ in found) <= 6
    made, place = [], 0
    for i1, i2, j1, j2 in found:
        made += [*old[place:i1], *new[j1:j2]]
        place = i2
    assert [*made, *old[place:]] == new
