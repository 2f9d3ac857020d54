"""Tables from fixtures, markers and configuration keys of pytest to the plugin that provides them."""

from __future__ import annotations

FIXTURES = {
    "mocker": "pytest-mock",
    "class_mocker": "pytest-mock",
    "module_mocker": "pytest-mock",
    "session_mocker": "pytest-mock",
    "benchmark": "pytest-benchmark",
    "requests_mock": "requests-mock",
    "httpserver": "pytest-httpserver",
    "httpbin": "pytest-httpbin",
    "httpx_mock": "pytest-httpx",
    "respx_mock": "respx",
    "aiohttp_client": "pytest-aiohttp",
    "aioresponses": "aioresponses",
    "freezer": "pytest-freezer",
    "time_machine": "time-machine",
    "subtests": "pytest-subtests",
    "datadir": "pytest-datadir",
    "shared_datadir": "pytest-datadir",
    "lazy_datadir": "pytest-datadir",
    "data_regression": "pytest-regressions",
    "file_regression": "pytest-regressions",
    "num_regression": "pytest-regressions",
    "snapshot": "syrupy",
    "fs": "pyfakefs",
    "faker": "Faker",
    "django_user_model": "pytest-django",
    "live_server": "pytest-django",
    "settings": "pytest-django",
    "qtbot": "pytest-qt",
    "script_runner": "pytest-console-scripts",
    "loguru_caplog": "pytest-loguru",
    "nursery": "pytest-trio",
    "autojump_clock": "pytest-trio",
    "anyio_backend": "anyio",
    "cases": "pytest-cases",
    "regtest": "pytest-regtest",
    "testfixtures": "testfixtures",
    "unused_tcp_port": "pytest-asyncio",
    "unused_tcp_port_factory": "pytest-asyncio",
}
"""Fixture to the plugin that provides it; used where no conftest of the project defines it."""

AMBIGUOUS_FIXTURES = frozenset({"settings", "fs", "snapshot", "cases", "nursery", "regtest", "faker", "live_server"})
"""Fixture names that projects also define themselves: the plugin is installed only if the manifests name it too."""

MARKERS = {
    "anyio": "anyio",
    "asyncio": "pytest-asyncio",
    "trio": "pytest-trio",
    "benchmark": "pytest-benchmark",
    "django_db": "pytest-django",
    "urls": "pytest-django",
    "flaky": "pytest-rerunfailures",
    "freeze_time": "pytest-freezer",
    "timeout": "pytest-timeout",
    "httpx_mock": "pytest-httpx",
    "vcr": "pytest-recording",
    "datafiles": "pytest-datafiles",
    "dependency": "pytest-dependency",
    "order": "pytest-order",
    "run": "pytest-ordering",
    "repeat": "pytest-repeat",
    "forked": "pytest-forked",
    "gen_test": "pytest-tornado",
    "tornado": "pytest-tornado",
    "twisted": "pytest-twisted",
    "script_launch_mode": "pytest-console-scripts",
    "parametrize_with_cases": "pytest-cases",
    "subprocess": "pytest-subprocess",
}
"""Marker to the plugin that implements it."""

AMBIGUOUS_MARKERS = frozenset({"run", "order", "urls", "subprocess", "repeat", "flaky", "benchmark", "dependency"})
"""Markers that projects also define themselves: the plugin is installed only if the manifests name it too."""

TOOL_MARKERS = frozenset(
    {"no_cover", "xdist_group", "flaky", "timeout", "benchmark", "forked", "memray", "limit_memory"}
)
"""Markers of plugins that excise does not install; they must not be errors."""

CORE_KEYS = frozenset({
    "addopts", "cache_dir", "collect_imported_tests", "confcutdir", "consider_namespace_packages",
    "console_output_style", "disable_test_id_escaping_and_forfeit_all_rights_to_community_support",
    "doctest_encoding", "doctest_optionflags", "empty_parameter_set_mark", "enable_assertion_pass_hook",
    "faulthandler_exit_on_timeout", "faulthandler_timeout", "filterwarnings", "junit_duration_report",
    "junit_family", "junit_log_passing_tests", "junit_logging", "junit_suite_name", "log_auto_indent", "log_cli",
    "log_cli_date_format", "log_cli_format", "log_cli_level", "log_date_format", "log_file", "log_file_date_format",
    "log_file_format", "log_file_level", "log_file_mode", "log_format", "log_level", "markers", "minversion",
    "norecursedirs", "python_classes", "python_files", "python_functions", "pythonpath", "required_plugins",
    "strict", "strict_config", "strict_markers", "strict_parametrization_ids", "strict_xfail", "testpaths",
    "tmp_path_retention_count", "tmp_path_retention_policy", "truncation_limit_chars", "truncation_limit_lines",
    "usefixtures", "verbosity_assertions", "verbosity_subtests", "verbosity_test_cases", "xfail_strict",
})  # fmt: skip
"""Configuration keys of pytest itself."""

CONFIG_KEYS = {
    "asyncio_mode": "pytest-asyncio",
    "asyncio_default_fixture_loop_scope": "pytest-asyncio",
    "anyio_mode": "anyio",
    "trio_mode": "pytest-trio",
    "timeout": "pytest-timeout",
    "env": "pytest-env",
    "DJANGO_SETTINGS_MODULE": "pytest-django",
    "django_find_project": "pytest-django",
    "doctest_plus": "pytest-doctestplus",
    "qt_api": "pytest-qt",
    "env_files": "pytest-dotenv",
}
"""Configuration key to the plugin that reads it."""
