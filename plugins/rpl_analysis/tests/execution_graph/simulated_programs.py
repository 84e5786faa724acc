"""Random host programs for the simulator: streams made and destroyed, events, waits, several threads."""

from __future__ import annotations

import random

import attrs

from rpl_testkit.simulation.runtime import OWN_STREAM, HostThread, Step

_STREAMS, _EVENTS = 4, 3
_LAUNCHES = ("launch", "launch", "copy")
_CALLS = (*_LAUNCHES * 3, *("record", "wait") * 3, "sync_stream", "sync_event", "sync_device")
#: Time inside a call until it takes effect, and from then on: between threads, long calls overlap.
_IN_CALL = ((100, 100), (0, 0), (100, 5_000), (5_000, 100), (3_000, 3_000))
_START, _TALK = 99, 98
_EVENTS_PER_GPU = 10
#: Calls for which the device of the thread must be, or decides which, the one of the step.
_ON_DEVICE = (
    *("launch", "graph", "copy", "blocking_copy", "memset", "host_function", "free", "create_stream"),
    *("record", "wait", "sync_device", "sync_stream", "query_stream"),
)
#: Calls whose times tell that they waited, and all.
TELLING = ("host_function", "memset", "blocking_copy", "free")
_POLLS = ("query_stream", "query_event")
EVERYTHING = (*TELLING, *_POLLS)
_MAY_WAIT = ("copy", "memset", "free")


def random_program(
    rng: random.Random,
    threads: int,
    *,
    graphs: bool = False,
    gpus: int = 1,
    further: tuple[str, ...] = (),
) -> tuple[HostThread, ...]:
    """Every piece of work has a name of its own; thread 0 makes the shared streams before others begin.

    With ``graphs`` some launches are of graphs with up to three branches. Of several GPUs each has streams
    and events of its own, and a thread changes to the one that it puts work on.

    ``further`` kinds of calls come with the default streams of threads, streams of other priorities and other
    functions of the same meaning. Without queries among them the times of calls tell which of them waited.
    """
    makes = [
        Step(
            "create_stream",
            stream=stream,
            non_blocking=rng.random() < 0.5,
            device=stream % gpus,
            which=rng.randrange(3) if further else 0,
        )
        for stream in range(1, _STREAMS)
    ]
    return tuple(
        tuple(
            _on_devices(
                [
                    *([] if thread else makes),
                    Step("listen" if thread else "tell", event=_START),
                    *_steps(rng, thread, threads, graphs=graphs, gpus=gpus, further=further),
                ],
                gpus,
            )
        )
        for thread in range(threads)
    )


def _on_devices(steps: list[Step], gpus: int) -> list[Step]:
    """The same with the calls that choose the device which each step names."""
    found: list[Step] = []
    device = 0
    for step in steps:
        if step.kind in _ON_DEVICE and step.device != device and gpus > 1:
            device = step.device
            found.append(Step("set_device", device=device))
        found.append(step)
    return found


def _steps(
    rng: random.Random, thread: int, threads: int, *, graphs: bool, gpus: int, further: tuple[str, ...]
) -> list[Step]:
    steps: list[Step] = []
    home = thread % gpus  # of its own stream
    own = _STREAMS + thread  # a stream, and an event, that no other thread uses
    made = False
    for number in range(rng.randint(1, 24)):
        kind = rng.choice((*_CALLS, *further, "stream", "destroy_event", "think", "tell", "listen"))
        if kind in ("tell", "listen"):
            # Threads that talk wait for each other without any call; the first one never waits.
            if threads > 1 and (kind == "tell") == (thread == 0):
                steps.append(Step(kind, event=_TALK))
            continue
        event = own if kind == "destroy_event" or rng.random() < 0.3 else rng.randrange(_EVENTS)
        stream = own if made and rng.random() < 0.4 else rng.randrange(_STREAMS)
        before, after = rng.choice(_IN_CALL)
        step = Step(
            "create_stream" if kind == "stream" else kind,
            stream=stream,
            event=event,
            name=f"{thread}.{number}",
            duration_ns=rng.choice((1_000, 5_000, 60_000)),
            before_ns=before,
            after_ns=after,
        )
        if kind == "stream":
            made = not made
            verb = "create_stream" if made else "destroy_stream"
            step = attrs.evolve(step, kind=verb, stream=own, non_blocking=rng.random() < 0.5)
        if further:
            step = _varied(rng, step, further, gpus)
        if step.kind != "create_stream" and step.stream < _STREAMS:
            home_of = step.stream % gpus if step.stream > 0 else rng.randrange(gpus)
            step = attrs.evolve(step, device=home_of)
        else:
            step = attrs.evolve(step, device=home)
        if step.kind == "record":
            step = attrs.evolve(step, event=step.event + _EVENTS_PER_GPU * step.device)
        elif step.kind in ("wait", "sync_event", "query_event", "destroy_event"):
            step = attrs.evolve(step, event=step.event + _EVENTS_PER_GPU * rng.randrange(gpus))
        if graphs and kind == "launch" and rng.random() < 0.3:
            step = attrs.evolve(step, kind="graph", branches=rng.randint(1, 3))
        steps.append(step)
    if thread == 0 and threads > 1:
        steps.append(Step("tell", event=_TALK))
    return steps


def _varied(rng: random.Random, step: Step, further: tuple[str, ...], gpus: int) -> Step:
    """The step as one of the functions that mean it, in a default stream now and then, waiting or not."""
    step = attrs.evolve(step, which=rng.randrange(3), by_name=rng.random() < 0.5)
    if step.stream < _STREAMS and "stream" not in step.kind and rng.random() < 0.2:
        step = attrs.evolve(step, stream=OWN_STREAM)
    if step.kind in (*_POLLS, *_MAY_WAIT, "destroy_stream"):
        step = attrs.evolve(step, waits=rng.random() < 0.5)
    return step if set(_POLLS) & set(further) else _telling(step, gpus)


def _telling(step: Step, gpus: int) -> Step:
    """Calls that don't wait return before their work can have ended, and no other device is waited for."""
    if step.kind == "free":
        return attrs.evolve(step, waits=gpus == 1, kind="free" if gpus == 1 else "think")
    if step.kind == "destroy_stream":
        return attrs.evolve(step, waits=False)
    return attrs.evolve(step, after_ns=100) if step.kind in _MAY_WAIT else step


def apart(program: tuple[HostThread, ...]) -> tuple[HostThread, ...]:
    """The same with threads that share nothing: each keeps to its own default streams and its own events."""
    shared = ("tell", "listen", "sync_device", "free", "create_stream", "destroy_stream")
    null = ("blocking_copy", "memset")
    return tuple(
        tuple(
            attrs.evolve(
                step,
                kind="copy" if step.kind in null else step.kind,
                stream=OWN_STREAM,
                event=step.event + 100 * thread,
            )
            for step in steps
            if step.kind not in shared
        )
        for thread, steps in enumerate(program)
    )


def sparse(rng: random.Random, program: tuple[HostThread, ...]) -> tuple[HostThread, ...]:
    """The same with events instead of most work, so that many streams hold waits and records only."""
    return tuple(
        tuple(
            attrs.evolve(step, kind=rng.choice(("record", "wait", "wait")), waits=False)
            if step.kind in _LAUNCHES and rng.random() < 0.6
            else step
            for step in thread
        )
        for thread in program
    )


def unlike(rng: random.Random, program: tuple[HostThread, ...]) -> tuple[HostThread, ...]:
    """The same with work that takes other times each, so that hardly anything ends at once.

    Branches of graphs overlap by more than clocks are trusted to differ, 1 us; host functions, whose time no
    recording shows, take none.
    """
    unseen = {"think": 1, "host_function": 0}
    return tuple(
        tuple(
            attrs.evolve(
                step,
                duration_ns=step.duration_ns * unseen[step.kind]
                if step.kind in unseen
                else 4_000 + step.duration_ns + rng.randrange(997),
            )
            for step in thread
        )
        for thread in program
    )


def hurried(program: tuple[HostThread, ...]) -> tuple[HostThread, ...]:
    """The same calls by a host that takes no time: nothing but work is left that takes any."""
    return tuple(
        tuple(
            attrs.evolve(
                step,
                before_ns=0,
                after_ns=0,
                duration_ns=0 if step.kind in ("think", "host_function") else step.duration_ns,
            )
            for step in thread
        )
        for thread in program
    )


def named_alike(rng: random.Random, program: tuple[HostThread, ...]) -> tuple[HostThread, ...]:
    """The same with three kernels and three directions of copies instead of a name per piece of work."""
    return tuple(
        tuple(attrs.evolve(step, name=f"{step.kind} {rng.randrange(3)}") for step in thread)
        for thread in program
    )


def kept_busy(rng: random.Random) -> tuple[HostThread, ...]:
    """One thread far ahead of the device: but for the first launches after a wait, none is waited for.

    Work takes 200 us at least, all calls together less than 50.
    """
    (thread,) = named_alike(rng, random_program(rng, 1, graphs=True, gpus=rng.choice((1, 2))))
    return (
        tuple(
            attrs.evolve(
                step,
                before_ns=0,
                after_ns=rng.choice((100, 900)),
                # Divided by branches and factors nothing is left over.
                duration_ns=rng.choice((240, 264, 900)) * 1_000 if step.kind in (*_LAUNCHES, "graph") else 0,
            )
            for step in thread
        ),
    )


def faster(program: tuple[HostThread, ...], name: str, factor: int) -> tuple[HostThread, ...]:
    """The same program with all work of that name ``factor`` times as fast."""
    return tuple(
        tuple(
            attrs.evolve(step, duration_ns=step.duration_ns // factor) if step.name == name else step
            for step in thread
        )
        for thread in program
    )
