"""Replaced modules are detected without walking the whole model."""

from torch import nn

from fmapboard.model.layers import Membership


def _model() -> nn.Sequential:
    return nn.Sequential(nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU()), nn.Conv2d(8, 8, 3))


def test_a_model_that_was_not_modified_is_unchanged() -> None:
    model = _model()
    assert Membership(model, [model[0][0], model[1], model]).is_unchanged()


def test_a_replaced_module_is_noticed() -> None:
    model = _model()
    membership = Membership(model, [model[1]])
    model[1] = nn.Conv2d(8, 8, 3)
    assert not membership.is_unchanged()


def test_a_replaced_parent_is_noticed() -> None:
    model = _model()
    membership = Membership(model, [model[0][0]])
    model[0] = nn.Sequential(model[0][0])
    assert not membership.is_unchanged()


def test_another_module_may_be_replaced() -> None:
    model = _model()
    membership = Membership(model, [model[0][0]])
    model[1] = nn.Identity()
    model[0][1] = nn.GELU()
    assert membership.is_unchanged()


def test_a_module_of_another_model_is_not_in_this_one() -> None:
    assert not Membership(_model(), [nn.Conv2d(3, 8, 3)]).is_unchanged()
