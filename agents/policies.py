"""UnitBoxLstmPolicy: the paper's LSTM with Gaussian actions around means in [0, 1], as a recurrent SB3 policy."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from sb3_contrib.common.recurrent.policies import RecurrentActorCriticPolicy
from stable_baselines3.common.distributions import Distribution
from stable_baselines3.common.type_aliases import Schedule
from torch import Tensor, nn
from torch.distributions import Normal

from .networks import HIDDEN_LAYERS, HiddenLayer, NetworkName

MeanKind = Literal["sigmoid", "linear"]
StdKind = Literal["constant", "learned", "state"]


def interpolation_matrix(num_knots: int, population_size: int) -> NDArray[np.float32]:
    """Return the matrix (2N, 2K) from values of F and CR at K knots, spread over the ranks, to values at every rank.

    >>> interpolation_matrix(2, 3)[:3, :2]
    array([[1. , 0. ],
           [0.5, 0.5],
           [0. , 1. ]], dtype=float32)
    """
    ranks = np.round(np.linspace(0, population_size - 1, num_knots))
    hats = [np.interp(np.arange(population_size), ranks, unit) for unit in np.eye(num_knots)]
    return np.kron(np.eye(2), np.stack(hats, axis=1)).astype(np.float32)


class UnitBoxLstmPolicy(RecurrentActorCriticPolicy):
    """One LSTM layer and fully connected heads; trains under RecurrentREINFORCE and under RecurrentPPO.

    The paper's two heads, for F and for CR, read the same hidden state, so they are one layer of 2N outputs here.
    A GRU, or a layer without memory, can take the LSTM's place (and keeps its names, which sb3-contrib asks for).
    SB3's own Gaussian policy starts with all means at 0, a corner of the unit box; a sigmoid starts in the middle.
    """

    # Called as an nn.LSTM is.
    lstm_actor: HiddenLayer  # type: ignore[assignment]
    lstm_critic: HiddenLayer | None  # type: ignore[assignment]

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        lr_schedule: Schedule,
        use_sde: bool = False,
        *,
        lstm_hidden_size: int = 64,
        network: NetworkName = "lstm",
        mean: MeanKind = "sigmoid",
        std: StdKind = "constant",
        initial_std: float = 0.2,
        num_knots: int | None = None,
        enable_critic_lstm: bool = False,
        optimizer_kwargs: dict[str, Any] | None = None,
    ) -> None:
        """Build the network and its Adam optimiser.

        Args:
            observation_space: A Box of one dimension.
            action_space: A Box of one dimension with every number in [0, 1].
            lr_schedule: The learning rate as a function of the remaining progress.
            use_sde: Must be False; SB3 passes it to every policy.
            lstm_hidden_size: The number of cells H of the hidden layer.
            network: The hidden layer: "lstm" (paper), "gru", or "mlp", which has no memory.
            mean: "sigmoid" (the paper's text) or "linear" (its authors' script).
            std: "constant" (the paper's text), "learned" (one number per action, for RecurrentPPO), or "state"
                (sigmoid of a layer on the hidden state, as in the authors' script).
            initial_std: The constant, or the first value of the learned deviations; unused by "state".
            num_knots: Ranks at which mean F and CR are chosen, interpolated in between; 1 gives all ranks the same
                two means, None chooses them at all ranks. The noise is always independent from rank to rank: a
                population needs differing parameters, but its policy need not learn each of the 2N means apart.
            enable_critic_lstm: Whether the critic has an LSTM of its own; otherwise it reads the actor's.
            optimizer_kwargs: Arguments of Adam other than the learning rate.
        """
        _check_arguments(action_space, use_sde, mean, std, initial_std)
        _check_knots(action_space, num_knots)
        if network not in HIDDEN_LAYERS:
            raise ValueError(f"`network` must be one of {', '.join(map(repr, HIDDEN_LAYERS))}, got {network!r}.")
        self.network = network
        # Plain values, which nn.Module takes before its own constructor has run; the parent builds the heads.
        self.mean, self.std, self.initial_std, self.num_knots = mean, std, initial_std, num_knots
        super().__init__(
            observation_space,
            action_space,
            lr_schedule,
            net_arch={"pi": [], "vf": []},
            ortho_init=False,  # the paper initialises uniformly at random, which is torch's default
            log_std_init=math.log(initial_std),
            lstm_hidden_size=lstm_hidden_size,
            shared_lstm=not enable_critic_lstm,
            enable_critic_lstm=enable_critic_lstm,
            optimizer_kwargs=optimizer_kwargs or {},
        )
        if network != "lstm":
            self._replace_layers(lr_schedule)

    def _replace_layers(self, lr_schedule: Schedule) -> None:
        """Put other hidden layers where SB3 has made its LSTMs, and let the optimiser know them."""
        make, sizes = HIDDEN_LAYERS[self.network], (self.lstm_actor.input_size, self.lstm_output_dim)
        self.lstm_actor = make(*sizes)
        if self.lstm_critic is not None:
            self.lstm_critic = make(*sizes)
        options: dict[str, Any] = {"lr": lr_schedule(1), **self.optimizer_kwargs}
        self.optimizer = self.optimizer_class(self.parameters(), **options)

    def _build(self, lr_schedule: Schedule) -> None:
        """Add what SB3 does not know: knots, state-dependent deviations, and constants that are not trained."""
        super()._build(lr_schedule)
        self.log_std.requires_grad_(self.std == "learned")
        latent_size, action_size = self.mlp_extractor.latent_dim_pi, len(self.log_std)
        self.interpolation: Tensor | None
        matrix = None if self.num_knots is None else interpolation_matrix(self.num_knots, action_size // 2)
        self.register_buffer("interpolation", None if matrix is None else torch.as_tensor(matrix), persistent=False)
        if self.num_knots is not None:
            self.action_net = nn.Linear(latent_size, 2 * self.num_knots)
        if self.std == "state":
            self.std_net = nn.Linear(latent_size, action_size)

    def _get_action_dist_from_latent(self, latent_pi: Tensor) -> Distribution:
        """Return the Gaussian whose mean and deviation the heads compute from hidden states (B, H)."""
        outputs = self.action_net(latent_pi)
        mean = torch.sigmoid(outputs) if self.mean == "sigmoid" else outputs
        if self.interpolation is not None:
            mean = mean @ self.interpolation.T
        log_std = nn.functional.logsigmoid(self.std_net(latent_pi)) if self.std == "state" else self.log_std
        # What `proba_distribution` does, but for asking of every step whether its numbers are finite.
        deviation = torch.ones_like(mean) * log_std.exp()
        self.action_dist.distribution = Normal(mean, deviation, validate_args=False)
        return self.action_dist

    def action_distribution(self, hidden_states: Tensor) -> Distribution:
        """Return the distribution of the actions at hidden states (B, H); SB3 sums log-probabilities over axis 1."""
        return self._get_action_dist_from_latent(hidden_states)

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return {
            "observation_space": self.observation_space,
            "action_space": self.action_space,
            "lr_schedule": self._dummy_schedule,
            "lstm_hidden_size": self.lstm_output_dim,
            "network": self.network,
            "mean": self.mean,
            "std": self.std,
            "initial_std": self.initial_std,
            "num_knots": self.num_knots,
            "enable_critic_lstm": self.enable_critic_lstm,
            "optimizer_kwargs": self.optimizer_kwargs,
        }


def _check_knots(action_space: spaces.Space[Any], num_knots: int | None) -> None:
    assert action_space.shape is not None
    population_size, odd = divmod(action_space.shape[0], 2)
    if num_knots is not None and (odd or not 1 <= num_knots <= population_size):
        raise ValueError(
            f"`num_knots` must be None or from 1 to half the {action_space.shape[0]} numbers of an action, "
            f"got {num_knots}."
        )


def _check_arguments(action_space: spaces.Space[Any], use_sde: bool, mean: str, std: str, initial_std: float) -> None:
    if not isinstance(action_space, spaces.Box) or len(action_space.shape) != 1:
        raise ValueError(f"UnitBoxLstmPolicy needs a one-dimensional Box of actions, got {action_space}.")
    if (action_space.low != 0.0).any() or (action_space.high != 1.0).any():
        raise ValueError(f"UnitBoxLstmPolicy needs actions in [0, 1], got {action_space}.")
    if use_sde:
        raise ValueError("UnitBoxLstmPolicy has no state-dependent exploration; `use_sde` must be False.")
    if mean not in ("sigmoid", "linear"):
        raise ValueError(f"`mean` must be 'sigmoid' or 'linear', got {mean!r}.")
    if std not in ("constant", "learned", "state"):
        raise ValueError(f"`std` must be 'constant', 'learned' or 'state', got {std!r}.")
    if not initial_std > 0.0:
        raise ValueError(f"`initial_std` must be positive, got {initial_std}.")
