"""Tables from the import name of a module to the distribution that provides it."""

from __future__ import annotations

import sys

DISTRIBUTIONS = {
    "attr": "attrs",
    "bs4": "beautifulsoup4",
    "cairo": "pycairo",
    "Crypto": "pycryptodome",
    "Cryptodome": "pycryptodomex",
    "cv2": "opencv-python-headless",
    "dateutil": "python-dateutil",
    "dns": "dnspython",
    "docx": "python-docx",
    "dotenv": "python-dotenv",
    "engineio": "python-engineio",
    "faker": "Faker",
    "fitz": "PyMuPDF",
    "flask_sqlalchemy": "Flask-SQLAlchemy",
    "git": "GitPython",
    "gi": "PyGObject",
    "github": "PyGithub",
    "gnupg": "python-gnupg",
    "google.protobuf": "protobuf",
    "grpc": "grpcio",
    "importlib_metadata": "importlib-metadata",
    "importlib_resources": "importlib-resources",
    "IPython": "ipython",
    "jose": "python-jose",
    "jwt": "PyJWT",
    "Levenshtein": "python-Levenshtein",
    "ldap": "python-ldap",
    "magic": "python-magic",
    "markdown": "Markdown",
    "markdown_it": "markdown-it-py",
    "mpl_toolkits": "matplotlib",
    "MySQLdb": "mysqlclient",
    "nacl": "PyNaCl",
    "OpenSSL": "pyOpenSSL",
    "past": "future",
    "railroad": "railroad-diagrams",
    "PIL": "Pillow",
    "pkg_resources": "setuptools",
    "psycopg2": "psycopg2-binary",
    "pptx": "python-pptx",
    "pythonjsonlogger": "python-json-logger",
    "pywintypes": "",
    "rest_framework": "djangorestframework",
    "ruamel": "ruamel.yaml",
    "serial": "pyserial",
    "setuptools_scm": "setuptools-scm",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "slugify": "python-slugify",
    "snappy": "python-snappy",
    "socketio": "python-socketio",
    "socks": "PySocks",
    "tlz": "toolz",
    "typing_extensions": "typing-extensions",
    "unidecode": "Unidecode",
    "usb": "pyusb",
    "websocket": "websocket-client",
    "win32api": "",
    "win32con": "",
    "winreg": "",
    "wx": "wxPython",
    "xdist": "pytest-xdist",
    "yaml": "PyYAML",
    "zmq": "pyzmq",
    "zope": "zope.interface",
    "_pytest": "pytest",
    "distutils": "setuptools",
    "pytest_asyncio": "pytest-asyncio",
    "pytest_httpserver": "pytest-httpserver",
    "pytest_mock": "pytest-mock",
    "pytest_lazyfixture": "pytest-lazy-fixture",
    "pytest_lazy_fixtures": "pytest-lazy-fixtures",
    "pytest_subtests": "pytest-subtests",
    "pytest_cases": "pytest-cases",
    "time_machine": "time-machine",
}
"""Import name to distribution; empty for modules that no index has."""

_REMOVED = frozenset(
    ("imp", "asynchat", "asyncore", "smtpd", "cgi", "cgitb", "crypt", "nntplib", "telnetlib", "uu", "xdrlib")
)
STANDARD = (sys.stdlib_module_names | _REMOVED | {"__future__", "__main__"}) - {"distutils"}
"""Modules of the standard library, including those that newer interpreters removed."""


SAME_NAME = frozenset({
    "aiofiles", "aiohttp", "aiosqlite", "alembic", "anyio", "arrow", "asgiref", "asynctest", "babel", "bcrypt",
    "blinker", "boto3", "botocore", "bottle", "brotli", "cachetools", "cattrs", "celery", "certifi", "cffi",
    "chardet", "cherrypy", "click", "cloudpickle", "colorama", "construct", "contextlib2", "cryptography", "cython",
    "dask", "dataclasses_json", "ddt", "deepdiff", "defusedxml", "dill", "distro", "django", "docopt", "docutils",
    "duckdb", "ecdsa", "elasticsearch", "exceptiongroup", "execnet", "expecttest", "factory_boy", "falcon",
    "fastapi", "filelock", "flaky", "flask", "freezegun", "fsspec", "future", "genshi", "gevent", "greenlet",
    "gunicorn", "h11", "h2", "h5py", "hamcrest", "html5lib", "httplib2", "httpx", "hypothesis", "idna", "igraph",
    "imageio", "iniconfig", "isodate", "itsdangerous", "jinja2", "jmespath", "joblib", "jsonpatch", "jsonschema",
    "kombu", "lark", "lxml", "lz4", "mako", "markupsafe", "marshmallow", "matplotlib", "mock", "mongomock",
    "more_itertools", "moto", "msgpack", "multidict", "networkx", "nose", "nose2", "numba", "numpy", "oauthlib",
    "openpyxl", "orjson", "outcome", "packaging", "pandas", "parameterized", "paramiko", "passlib", "peewee",
    "pendulum", "pexpect", "pkginfo", "platformdirs", "pluggy", "polars", "portend", "pretend", "prettytable",
    "psutil", "ptyprocess", "pyarrow", "pyasn1", "pycparser", "pydantic", "pydot", "pyfakefs", "pygments",
    "pymongo", "pympler", "pymysql", "pyparsing", "pyrsistent", "pytest", "pytest_benchmark", "pytz", "redis",
    "regex", "requests", "requests_mock", "requests_toolbelt", "responses", "respx", "rich", "rsa", "scipy",
    "setuptools", "shapely", "simplejson", "six", "sniffio", "sortedcontainers", "soupsieve", "sqlalchemy",
    "starlette", "structlog", "sybil", "sympy", "syrupy", "tabulate", "tblib", "tenacity", "termcolor",
    "testfixtures", "testtools", "tinycss2", "toml", "tomli", "tomli_w", "tomlkit", "toolz", "tornado", "tqdm",
    "trio", "trustme", "twisted", "typeguard", "tzdata", "tzlocal", "ujson", "unittest2", "uritemplate", "urllib3",
    "uvicorn", "uvloop", "vcrpy", "virtualenv", "wcwidth", "webcolors", "webob", "websockets", "webtest",
    "werkzeug", "wrapt", "wtforms", "xarray", "xmltodict", "yarl", "zstandard",
})  # fmt: skip
"""Well-known modules whose distribution has the same name (with ``_`` for ``-``).

Modules in neither table are not guessed: an unknown distribution of the same name may hold anything.
"""


def known_distribution(module: str) -> str:
    """Like :func:`distribution_of`, but empty for modules that are not well known."""
    top = module.partition(".")[0]
    known = module in DISTRIBUTIONS or top in DISTRIBUTIONS or top.lower() in SAME_NAME or top.startswith("pytest_")
    return distribution_of(module) if known else ""


def distribution_of(module: str) -> str:
    """The distribution that provides a module; empty if it is in the standard library or unknown."""
    top = module.partition(".")[0]
    if top in STANDARD:
        return ""
    if module in DISTRIBUTIONS:
        return DISTRIBUTIONS[module]
    return DISTRIBUTIONS.get(top, top.replace("_", "-"))
