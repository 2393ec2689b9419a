"""Both local backends keep every promise of the port, and a check fails where one is broken."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from codeenv.sandbox.api import SandboxProvider
from codeenv.sandbox.conformance import session, support
from codeenv.sandbox.conformance.catalogue import TOPICS, checks
from codeenv.sandbox.conformance.session import Session
from codeenv.sandbox.conformance.suite import test_sandbox as test_sandbox
from codeenv.sandbox.conformance.support import NotPromised
from tests.conftest import BACKENDS, provider_or_skip
from tests.sandbox import broken
from tests.sandbox.broken import Wrapped, WrappedProvider


@pytest.fixture(scope="module", params=BACKENDS)
def conformance_provider(request: pytest.FixtureRequest) -> SandboxProvider:
    return provider_or_skip(request.param)


# --- the checks themselves -----------------------------------------------------------------------------------------

BREAKAGES = {
    broken.SignalIsOne: ["commands.death_by_a_signal_is_128_and_its_number"],
    broken.Exit124IsTimeout: ["commands.exit_124_is_no_timeout"],
    broken.ArgvIsJoined: ["commands.an_argv_is_taken_literally"],
    broken.RunsTwice: ["commands.a_command_is_run_once"],
    broken.MissingCwdIsAResult: ["commands.a_missing_cwd_is_an_error_of_its_own"],
    broken.InputIsDropped: ["input.input_arrives_exactly", "input.input_goes_through_a_command"],
    broken.HostsVariablesComeIn: ["isolation.our_variables_do_not_come_in"],
    broken.OutputIsText: ["output.any_bytes_come_back", "output.invalid_text_comes_back"],
    broken.OutputIsStripped: ["commands.stdout_and_stderr_are_apart"],
    broken.OnlyTheHeadIsKept: ["output.head_and_tail_are_kept", "output.each_stream_has_the_limit"],
    broken.CombinesAfterwards: ["output.combine_keeps_the_order"],
    broken.SavesOverWhatIsThere: ["output.output_is_never_saved_over_anything"],
    broken.TimeoutIsIgnored: ["endings.no_time_at_all_is_a_timeout_at_once"],
    broken.TimeoutLosesOutput: ["endings.a_timeout_keeps_what_was_printed"],
    broken.TimeoutKillsTheShellAlone: ["endings.a_timeout_kills_the_whole_tree"],
    broken.WaitsForDaemons: ["endings.a_daemon_does_not_hold_its_command_up"],
    broken.CancelledCommandsRunOn: ["concurrency.a_cancelled_command_dies"],
    broken.OneCommandAtATime: ["concurrency.commands_see_each_others_files"],
    broken.ProcessesOutliveTheirBlock: ["processes.leaving_the_block_kills"],
    broken.ProcessesReceiveText: ["processes.a_process_is_a_conversation"],
    broken.ModesAreLost: ["files.modes_are_kept_unless_given", "files.a_written_program_runs"],
    broken.LimitsAreIgnored: ["files.reading_over_the_limit_is_too_big"],
    broken.FilesAreText: ["files.a_long_text_is_exact"],
    broken.MissingIsEmpty: ["files.what_is_missing_is_file_not_found"],
    broken.ListsInAnyOrder: ["listings.a_listing_tells_kind_mode_and_size_in_order"],
    broken.ExportsWhatTheyCan: ["archives.an_export_over_its_entries_is_too_large"],
    broken.ExportForgetsLinks: ["archives.a_tree_comes_back_as_it_was"],
    broken.ExportStopsNothing: ["archives.stop_processes_kills_first"],
    broken.ImportGoesThroughLinks: ["archives.an_import_makes_room_for_itself"],
    broken.ClosesOnce: ["life.closing_may_be_repeated"],
    broken.NeverCloses: ["life.a_closed_box_is_lost", "life.closing_ends_every_process"],
    broken.LostIsAnotherError: ["life.a_closed_box_is_lost", "life.closing_ends_the_calls_that_wait"],
    broken.ExpiredIsLost: ["life.a_box_expires_at_its_time"],
    broken.AcceptsAnySpec: ["specs.an_image_is_refused_where_there_are_none"],
    broken.GivesTheSameBox: ["isolation.two_boxes_share_nothing", "isolation.two_boxes_have_files_of_their_own"],
    broken.ForgetsTheSpec: [
        "limits.the_disk_is_bounded",
        "limits.processes_are_bounded",
    ],
    broken.LeaksWhenCancelled: ["life.a_cancelled_creation_leaves_nothing", "life.closing_in_a_cancelled_scope_closes"],
}
"""What is broken -> the checks that must see it."""

CASES = [(kind, name) for kind, names in BREAKAGES.items() for name in names]
BY_ID = {check.id: check for check in checks()}


@pytest.fixture
async def wrap() -> AsyncIterator[list[WrappedProvider]]:
    """Backends that are put into this list leave no box."""
    made: list[WrappedProvider] = []
    yield made
    for provider in made:
        await provider.clean()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "PATIENCE", 1.0)
    monkeypatch.setattr(support, "READY_SECONDS", (0.6,))


async def fails(provider: WrappedProvider, name: str) -> bool:
    try:
        await Session(provider).run(BY_ID[name])
    except NotPromised:
        return False
    except Exception:
        return True
    return False


@pytest.mark.anyio
@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(("kind", "name"), CASES, ids=[f"{kind.__name__}-{name}" for kind, name in CASES])
async def test_a_broken_promise_is_seen(
    provider: SandboxProvider, wrap: list[WrappedProvider], kind: type, name: str
) -> None:
    wrap.append(WrappedProvider(provider, kind) if issubclass(kind, Wrapped) else kind(provider))
    assert await fails(wrap[0], name)


@pytest.mark.anyio
@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("name", ["isolation.the_hosts_processes_cannot_be_seen", "isolation.there_is_no_network"])
async def test_a_claim_of_isolation_is_seen_through(wrap: list[WrappedProvider], name: str) -> None:
    wrap.append(broken.ClaimsToIsolate(provider_or_skip("unsafe-subprocess")))
    assert await fails(wrap[0], name)


@pytest.mark.anyio
async def test_a_wrapper_alone_breaks_nothing(provider: SandboxProvider, wrap: list[WrappedProvider]) -> None:
    wrap.append(WrappedProvider(provider))
    whole = Session(wrap[0])
    for name in sorted({name for _, name in CASES}):
        await whole.run(BY_ID[name])
    await whole.close()


@pytest.mark.parametrize("check", checks(), ids=lambda check: check.id)
def test_a_check_says_what_is_promised(check) -> None:
    assert check.promise.endswith(".")
    assert 20 < len(check.promise) < 250
    assert set(check.needs) <= {"box", "provider", "spec"}


def test_every_topic_has_checks_of_names_of_their_own() -> None:
    assert {check.topic for check in checks()} == set(TOPICS)
    assert len(BY_ID) == len(checks()) >= 60
