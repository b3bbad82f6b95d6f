import copy

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations, prune

from convattn.torch import AttentionConv, surgery, to_attention

IMAGES = torch.linspace(-1, 1, 2 * 3 * 9 * 8).reshape(2, 3, 9, 8)


class Network(nn.Module):
    """A convolution at two places, one of three axes, a transposed one, and one of a function."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 3, 3, padding=1)
        self.again = self.first
        self.volume = nn.Conv3d(1, 1, 1)
        self.up = nn.ConvTranspose2d(3, 3, 2, stride=2)
        self.kernel = nn.Parameter(torch.randn(3, 3, 3, 3))
        self.norm, self.drop = nn.BatchNorm2d(3), nn.Dropout()

    def forward(self, images):
        features = self.drop(self.again(torch.relu(self.first(images))))
        features = torch.conv2d(self.norm(features), self.kernel)
        return {"classes": self.volume(self.up(features)[:, None]).mean((1, 3, 4))}


@pytest.mark.parametrize("backend", ["shift", "dense", "flex"])
@pytest.mark.parametrize("training", [False, True])
def test_a_network_and_its_report(backend, training) -> None:
    model = Network().train(training)
    before = copy.deepcopy(model.state_dict())
    numbers = torch.get_rng_state()
    attention, report = to_attention(model, IMAGES, backend=backend)
    assert torch.equal(torch.get_rng_state(), numbers)
    assert all(torch.equal(model.state_dict()[name], each) for name, each in before.items())
    assert attention.again is attention.first
    assert attention.training == training
    assert attention.norm.num_batches_tracked == 0
    assert [(line.path, line.heads) for line in report.layers] == [
        ("first", 10),
        ("again", 10),
        ("up", 5),
    ]
    assert all(0 <= line.difference <= line.bound < 1e-2 for line in report.layers)
    assert report.passed
    assert report.same_class
    assert report.difference < 1e-5 < report.largest
    (volume, kernel) = report.left
    assert volume.startswith("volume: 3 axes")
    assert "(3, 3, 3, 3)" in kernel
    assert "2 convolutions are left" in str(report)


@pytest.mark.parametrize("bias", [True, False])
def test_zeros_tell_nothing(bias) -> None:
    """A layer that is given zeros gives its bias, whatever its weight is."""
    net = torch.nn.Sequential(torch.nn.Conv2d(2, 2, 3, padding=1, bias=bias)).eval()
    report = to_attention(net, torch.zeros(1, 2, 9, 9)).report
    assert report.layers[0].passed is None
    assert report.passed is None
    assert "zeros tell nothing" in str(report)


def test_a_wrong_layer_fails(monkeypatch) -> None:
    right = AttentionConv.from_conv.__func__

    def wrong(kind, conv, **options):
        layer = right(kind, conv, **options)
        with torch.no_grad():
            layer.output[0] *= 1.01
        return layer

    monkeypatch.setattr(surgery.AttentionConv, "from_conv", classmethod(wrong))
    report = to_attention(Network().eval().double(), IMAGES.double()).report
    assert not report.passed
    assert "FAILED" in str(report)


def test_the_copy_trains_and_is_saved_strictly() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 2, 1))
    attention, _ = to_attention(model, IMAGES)
    optimizer = torch.optim.SGD(attention.parameters(), 0.05)
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = (attention(IMAGES) - 1).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses == sorted(losses, reverse=True)
    assert all(each.grad is not None for each in attention.parameters())
    other = to_attention(model, IMAGES).model
    other.load_state_dict(attention.state_dict(), strict=True)
    assert torch.equal(other(IMAGES), attention(IMAGES))


def test_a_model_may_write_to_its_input() -> None:
    model = nn.Sequential(nn.ReLU(inplace=True), nn.Conv2d(3, 4, 3))
    images = IMAGES.clone()
    report = to_attention(model, images, call=lambda model, images: model(images.mul_(-1))).report
    assert report.difference < 1e-6
    assert torch.equal(images, IMAGES)


def test_which_are_converted() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 1), nn.Conv2d(4, 2, 3))
    attention, report = to_attention(
        model, IMAGES, pointwise="keep", where=lambda path, module: path != "2"
    )
    kinds = [type(each).__name__ for each in attention]
    assert kinds == ["AttentionConv", "Conv2d", "Conv2d"]
    reasons = ("1: pointwise='keep': it mixes no pixels", "2: `where` leaves it out")
    assert report.left == reasons
    alone, _ = to_attention(model[0], IMAGES)
    assert isinstance(alone, AttentionConv)


def test_a_class_with_a_forward_of_its_own_is_left() -> None:
    class Standardised(nn.Conv2d):
        def forward(self, images):
            return torch.conv2d(images, self.weight / self.weight.std(), self.bias)

    report = to_attention(nn.Sequential(Standardised(3, 3, 3), nn.Conv2d(3, 2, 3)), IMAGES).report
    assert report.left == ("0: Standardised has a forward of its own",)


def test_a_model_that_computes_with_parameters_of_layers_does_not_pass() -> None:
    class Decaying(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 2, 3)

        def forward(self, images):
            return self.conv(images), sum(each.abs().sum() for each in self.parameters())

    report = to_attention(Decaying(), IMAGES).report
    assert report.layers[0].passed
    assert report.difference > 1
    assert (report.passed, report.rest_is_same) == (None, False)


def test_float64_and_keyword_arguments_and_compiled_modules() -> None:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 3)

        def forward(self, images, *, scale):
            return (self.conv(images) * scale).mean((2, 3))

    model = torch.compile(Scaled().double())
    report = to_attention(
        model, IMAGES.double(), call=lambda model, images: model(images, scale=2)
    ).report
    assert report.layers[0].path == "conv"
    assert report.difference < 1e-13


def hooked(conv):
    conv.register_forward_hook(lambda *_: None)
    return conv


def pruned(conv):
    prune.l1_unstructured(conv, "weight", 2)
    return conv


def shared(conv):
    other = nn.Conv2d(3, 3, 3)
    other.weight = conv.weight
    return nn.Sequential(conv, other)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (nn.utils.weight_norm, r"weight norm.*remove_weight_norm"),
        (nn.utils.spectral_norm, r"spectral norm.*remove_spectral_norm"),
        (parametrizations.weight_norm, r"_WeightNorm.*remove_parametrizations\(layer, 'weight'\)"),
        (parametrizations.spectral_norm, r"_SpectralNorm.*remove_parametrizations"),
        (pruned, r"pruning.*prune\.remove\(layer, 'weight'\)"),
        (hooked, r"has the hook hooked.*remove it"),
        (shared, r"0\.0\.weight is also a parameter of 0\.1"),
    ],
)
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_what_is_refused_by_name(change, match) -> None:
    model = nn.Sequential(change(nn.Conv2d(3, 3, 3)), nn.Conv2d(3, 3, 3))
    with pytest.raises(ValueError, match=match):
        to_attention(model, IMAGES)


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_a_layer_that_is_refused_can_be_left_out() -> None:
    model = nn.Sequential(nn.utils.weight_norm(nn.Conv2d(3, 3, 3)), nn.Conv2d(3, 3, 3))
    with pytest.raises(ValueError, match=r"call the model once under torch\.no_grad"):
        to_attention(model, IMAGES, where=lambda path, module: path == "1")
    with torch.no_grad():
        model(IMAGES)
    report = to_attention(model, IMAGES, where=lambda path, module: path == "1").report
    assert report.left == ("0: `where` leaves it out",)


@pytest.mark.parametrize(
    ("model", "example", "options", "match"),
    [
        (nn.Linear(2, 2), IMAGES, {}, "holds no convolution"),
        (nn.Conv2d(3, 3, 3), IMAGES, {"where": lambda *_: False}, "`where` leaves it out"),
        (nn.Conv2d, IMAGES, {}, "call the class"),
        (torch.sin, IMAGES, {}, "expected a torch.nn.Module"),
        (nn.Conv2d(3, 3, 3), [IMAGES], {}, "example is a list"),
        (nn.Conv2d(3, 3, 3), IMAGES, {"where": 3}, "where=3"),
        (nn.Conv2d(3, 3, 3), IMAGES, {"pointwise": "no"}, "pointwise='no'"),
        (nn.Conv2d(3, 3, 3), IMAGES, {"backend": "no"}, "backend='no'"),
    ],
)
def test_what_it_does_not_take(model, example, options, match) -> None:
    with pytest.raises(ValueError, match=match):
        to_attention(model, example, **options)


class Rewriting(nn.Module):
    """A convolution, nonnegative and with a gain, that a function calls in its own way."""

    def __init__(self, call, gain) -> None:
        super().__init__()
        self.conv, self.call = nn.Conv2d(3, 4, 3), call
        with torch.no_grad():
            self.conv.weight.abs_()
        if isinstance(gain, nn.Parameter):
            self.gain = gain
        else:
            self.register_buffer("gain", gain)

    def forward(self, images):
        return self.call(self, images)


def in_place(model, images):
    model.conv.weight.data.div_(model.conv.weight.data.norm()).mul_(model.gain)
    return model.conv(images)


def in_place_of_it(model, images):
    """Where the gain is several, by their mean, which stays where steps cancel."""
    gain = model.gain.mean() if model.gain.ndim else model.gain
    scaled = {"weight": model.conv.weight * gain, "bias": model.conv.bias}
    return torch.func.functional_call(model.conv, scaled, (images,))


@torch.no_grad()
def projected(model, images):
    """As it is at once where the weights that it holds are in the set."""
    model.conv.weight.clamp_(min=0)
    return model.conv(images)


@torch.no_grad()
def clipped(model, images):
    """After each call, as the critic of a Wasserstein GAN."""
    outputs = model.conv(images)
    model.conv.weight.clamp_(-0.3, 0.3)
    return outputs


REWRITTEN = {
    "in place": (in_place, nn.Parameter(torch.ones(()))),
    "in place of it": (in_place_of_it, nn.Parameter(torch.ones(()))),
    "by a buffer": (in_place_of_it, torch.ones(())),
    "by an integer": (in_place_of_it, torch.ones((), dtype=torch.int64)),
    "by a mask": (in_place_of_it, torch.ones((), dtype=torch.bool)),
    "by a mean of 2": (in_place_of_it, nn.Parameter(torch.ones(2))),
    "by a mean of 4": (in_place_of_it, nn.Parameter(torch.ones(4))),
    "projected": (projected, torch.ones(())),
    "clipped": (clipped, torch.ones(())),
}


@pytest.mark.parametrize("called", [True, False])
@pytest.mark.parametrize("kind", REWRITTEN)
def test_a_weight_that_is_computed_at_each_call_is_refused(kind, called) -> None:
    model = Rewriting(*REWRITTEN[kind])
    if called:
        model(IMAGES)
    with pytest.raises(ValueError, match="conv: the model computes its weight at each call"):
        to_attention(model, IMAGES)


class Twice(torch.nn.Module):
    """One block under two names."""

    def __init__(self) -> None:
        super().__init__()
        self.a = torch.nn.Sequential(torch.nn.Conv2d(2, 2, 3, padding=1))
        self.b = self.a

    def forward(self, images):
        return self.b(self.a(images))


def test_a_shared_module_is_taken_by_all_of_its_paths_or_by_none() -> None:
    with pytest.raises(ValueError, match=r"b\.0 and a\.0 are one module, of which `where` takes"):
        to_attention(Twice(), torch.rand(1, 2, 5, 5), where=lambda path, conv: path == "a.0")
    attention = to_attention(Twice(), torch.rand(1, 2, 5, 5)).model
    assert attention.a[0] is attention.b[0]


class Sometimes(torch.nn.Module):
    """Asks for the type of its layer."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(2, 3, 3)

    def forward(self, images):
        return self.conv(images * (3 if isinstance(self.conv, torch.nn.Conv2d) else 1))


def test_outputs_far_apart_do_not_pass_where_layers_alone_do() -> None:
    report = to_attention(Sometimes(), torch.rand(1, 2, 5, 5)).report
    assert report.layers[0].passed
    assert report.difference > 0.1 * report.largest
    assert report.passed is None


def test_weights_that_share_their_numbers_are_refused() -> None:
    first, second = nn.Conv2d(3, 3, 3), nn.Conv2d(3, 3, 3)
    second.weight.data = first.weight.data
    with pytest.raises(ValueError, match=r"weight is also a parameter of"):
        to_attention(nn.Sequential(first, second), IMAGES)
