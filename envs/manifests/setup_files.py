"""Reader of setup.py (parsed, not run), setup.cfg, and the metadata in source distributions."""

from __future__ import annotations

import ast
import configparser
import re
from email.parser import HeaderParser
from pathlib import Path

from excise.envs.manifests.manifest import Manifest, words
from excise.envs.manifests.pyproject import pythons_of
from excise.envs.manifests.requirements import parse_requirements


def read_setuptools(root: Path) -> Manifest:
    """Read setup.cfg, else literals in setup.py, else the metadata of the sdist."""
    parts = [_setup_cfg(root), _setup_py(root), _metadata(root)]

    def first(name: str) -> tuple[str, ...]:
        return next((value for part in parts if (value := getattr(part, name))), ())

    extras: dict[str, tuple[str, ...]] = {}
    for part in reversed(parts):
        extras |= part.extras
    requires_python = next((p.requires_python for p in parts if p.requires_python), "")
    return Manifest(
        name=next((p.name for p in parts if p.name), ""),
        requires_python=requires_python,
        classifier_pythons=first("classifier_pythons"),
        dependencies=first("dependencies"),
        extras=extras,
        tests_require=first("tests_require"),
        source_roots=first("source_roots"),
        packages=first("packages"),
        build_backend="setuptools" if (root / "setup.py").is_file() or (root / "setup.cfg").is_file() else "",
        has_extensions=any(p.has_extensions for p in parts),
        evidence=tuple(line for part in parts for line in part.evidence),
    )


# --------------------------------------------------------------------------------------- setup.cfg
def _setup_cfg(root: Path) -> Manifest:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string((root / "setup.cfg").read_text(encoding="utf-8", errors="replace"))
    except (OSError, configparser.Error):
        return Manifest()
    metadata = dict(parser["metadata"]) if parser.has_section("metadata") else {}
    options = dict(parser["options"]) if parser.has_section("options") else {}
    extras = dict(parser["options.extras_require"]) if parser.has_section("options.extras_require") else {}
    where = parser.get("options.packages.find", "where", fallback="")
    package_dir = re.search(r"^\s*=\s*(\S+)", options.get("package_dir", ""), re.MULTILINE)
    named = [name for name in _list(options.get("packages", "")) if re.fullmatch(r"[\w.]+", name)]
    return Manifest(
        name=metadata.get("name", ""),
        requires_python=options.get("python_requires", ""),
        classifier_pythons=pythons_of(words(metadata.get("classifiers", ""))),
        dependencies=words(options.get("install_requires", "")),
        extras={name: words(value) for name, value in extras.items()},
        tests_require=words(options.get("tests_require", "")),
        source_roots=tuple(filter(None, dict.fromkeys([where.strip(), package_dir[1] if package_dir else ""]))),
        packages=tuple(dict.fromkeys(n.split(".")[0] for n in [*named, *_list(options.get("py_modules", ""))])),
        evidence=(f"setup.cfg: python_requires {options['python_requires']}",)
        if options.get("python_requires")
        else (),
    )


def _list(value: str) -> list[str]:
    return [item for line in words(value) for item in re.split(r"[,\s]+", line) if item]


# ---------------------------------------------------------------------------------------- setup.py
def _setup_py(root: Path) -> Manifest:
    try:
        text = (root / "setup.py").read_text(encoding="utf-8", errors="replace")
        tree = ast.parse(text)
    except (OSError, SyntaxError, ValueError):
        return Manifest()
    keywords = _keywords(tree, root)
    extras = keywords.get("extras_require")
    package_dir = keywords.get("package_dir")
    compiled = re.findall(r"\bExtension\(\s*(?:name\s*=\s*)?['\"]([\w.]+)['\"]", text)
    packages = [*_strings(keywords.get("packages")), *_strings(keywords.get("py_modules")), *compiled]
    base = package_dir.get("", "") if isinstance(package_dir, dict) else ""
    found_in = re.search(r"find_(?:namespace_)?packages\(\s*(?:where\s*=\s*)?['\"]([\w./]+)['\"]", text)
    requires_python = keywords.get("python_requires")
    return Manifest(
        name=str(keywords.get("name") or "") if isinstance(keywords.get("name"), str) else "",
        requires_python=requires_python if isinstance(requires_python, str) else "",
        classifier_pythons=pythons_of(tuple(re.findall(r"Programming Language :: Python :: 3\.\d+", text))),
        dependencies=_strings(keywords.get("install_requires")),
        extras={str(k): _strings(v) for k, v in extras.items() if ":" not in str(k)}
        if isinstance(extras, dict)
        else {},
        tests_require=_strings(keywords.get("tests_require")),
        source_roots=tuple(dict.fromkeys(filter(None, (str(base), found_in[1] if found_in else "")))),
        packages=tuple(dict.fromkeys(name.split(".")[0] for name in packages if re.fullmatch(r"[\w.]+", name))),
        has_extensions=bool(re.search(r"\bext_modules\b|\bExtension\(|\bcythonize\(|\bcffi_modules\b", text)),
        evidence=(f"setup.py: python_requires {requires_python}",) if requires_python else (),
    )


def _keywords(tree: ast.Module, root: Path) -> dict[str, object]:
    """Literal keyword arguments of ``setup(…)``, including those given by variables and ``**dict``."""
    scope = _Scope(root)
    keywords: dict[str, object] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            value = scope.value(node.value)
            for target in node.targets:
                if isinstance(target, ast.Name) and value is not None:
                    scope.names[target.id] = value
        elif isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) == "setup":
            for keyword in node.keywords:
                value = scope.value(keyword.value)
                if keyword.arg:
                    keywords[keyword.arg] = value
                elif isinstance(value, dict):
                    keywords.update(value)
    return keywords


class _Scope:
    """Evaluates literals, variables with literal values, and calls that read a requirements file."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.names: dict[str, object] = {}

    def value(self, node: ast.expr) -> object:
        if isinstance(node, (ast.List, ast.Tuple)):
            return [item for element in node.elts for item in self._spread(element)]
        if isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            return {key.value: self.value(value) for key, value in pairs if isinstance(key, ast.Constant)}
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            left, right = self.value(node.left), self.value(node.right)
            return [*left, *right] if isinstance(left, list) and isinstance(right, list) else left or right
        return self._leaf(node)

    def _leaf(self, node: ast.expr) -> object:
        if isinstance(node, ast.Name):
            return self.names.get(node.id)
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            container = self.value(node.value)
            return container.get(node.slice.value) if isinstance(container, dict) else None
        try:
            return ast.literal_eval(node)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            return self._file(node)

    def _spread(self, element: ast.expr) -> list[object]:
        value = self.value(element.value if isinstance(element, ast.Starred) else element)
        return value if isinstance(element, ast.Starred) and isinstance(value, list) else [value]

    def _file(self, node: ast.expr) -> object:
        """The requirements of a file that the expression mentions: a call with such a name is assumed to read it."""
        for inner in ast.walk(node):
            if (
                isinstance(inner, ast.Constant)
                and isinstance(inner.value, str)
                and re.search(r"req\S*\.(txt|in)$", inner.value)
            ):
                return list(parse_requirements(self.root, inner.value).requirements)
        return None


def _strings(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return words(value)
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


# ---------------------------------------------------------------------------- metadata of the sdist
def _metadata(root: Path) -> Manifest:
    infos = sorted(root.glob("*.egg-info")) + sorted(root.glob("*/*.egg-info"))
    paths = [root / "PKG-INFO", *(folder / "PKG-INFO" for folder in infos)]
    text = next((path.read_text(encoding="utf-8", errors="replace") for path in paths if path.is_file()), "")
    if not text:
        return Manifest()
    message = HeaderParser().parsestr(text)
    needs, extras = _requires_dist(message.get_all("Requires-Dist") or [])
    egg = infos[0] if infos else None
    if not needs and not extras and egg and (egg / "requires.txt").is_file():
        needs, extras = _requires_txt((egg / "requires.txt").read_text(encoding="utf-8", errors="replace"))
    top = (
        words((egg / "top_level.txt").read_text("utf-8", "replace"))
        if egg and (egg / "top_level.txt").is_file()
        else ()
    )
    return Manifest(
        name=message.get("Name", ""),
        requires_python=message.get("Requires-Python", ""),
        classifier_pythons=pythons_of(tuple(message.get_all("Classifier") or [])),
        dependencies=needs,
        extras=extras,
        packages=tuple(name for name in top if re.fullmatch(r"\w+", name)),
        source_roots=() if egg is None or egg.parent == root else (egg.parent.relative_to(root).as_posix(),),
        has_extensions=False,
    )


def _requires_dist(lines: list[str]) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
    needs: list[str] = []
    extras: dict[str, tuple[str, ...]] = {}
    for line in lines:
        match = re.search(r"extra\s*==\s*['\"]([^'\"]+)['\"]", line)
        if match is None:
            needs.append(line)
            continue
        plain, _, marker = line.partition(";")
        rest = re.sub(r"(\s*and\s*)?\(?\s*extra\s*==\s*['\"][^'\"]+['\"]\s*\)?", "", marker).strip()
        extras[match[1]] = (*extras.get(match[1], ()), f"{plain.strip()} ; {rest}" if rest else plain.strip())
    return tuple(needs), extras


def _requires_txt(text: str) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
    needs: list[str] = []
    extras: dict[str, tuple[str, ...]] = {}
    section, marker = "", ""
    for line in words(text):
        if line.startswith("["):
            section, _, marker = line.strip("[]").partition(":")
            continue
        entry = f"{line} ; {marker}" if marker else line
        if section:
            extras[section] = (*extras.get(section, ()), entry)
        else:
            needs.append(entry)
    return tuple(needs), extras
