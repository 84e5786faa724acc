"""The emulated device: the MI300X that the software KFD stands for, under a name of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rpl_core.model.device import DeviceModel

DEVICE = "gfx942-emu"
PRODUCT = "AMD Instinct MI300X (gfx942-emu, emulated)"


def emulated_device() -> DeviceModel:
    """Ceilings and formulas of the MI300X; nothing that ran on it was measured."""
    import attrs

    from rpl_amdgpu.models import device_models
    from rpl_gfx942.products import GFX942

    model = next(one for one in device_models(GFX942) if one.name == "mi300x")
    return attrs.evolve(model, name=DEVICE, architecture=DEVICE, product=PRODUCT, chip_ids=())
