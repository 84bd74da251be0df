package agent

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/turntable-streams/turntable/processors/channel"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/topics"
)

// Channels configures the platforms on which people write to the agent.
type Channels struct {
	// Accounts are the adapters of the accounts, for example that of slack.New. Required. An adapter with the method Run of package
	// adapter is run with the doors. Another one with the method Handler gets what its platform sends to ChannelsPath +
	// "{channel}/{name}". For all others see Agent.Receive. An adapter.Checker is asked at the start whether its platform accepts the
	// account: if not, a warning and HealthPath say why. The program closes the adapters after Agent.Run.
	Accounts []channel.AccountAdapter
	// Settings say whom the accounts answer, and how. Default: each account answers direct messages and mentions; a mention in a room
	// is answered in its thread, or in one that it starts.
	Settings channel.Live
}

// ErrNoChannels is returned by Receive of an agent without Config.Channels, or whose Parts have no Doors.
var ErrNoChannels = errors.New("agent: Receive needs Channels and the part Doors")

// ChannelsPath is the beginning of the paths of the doors of platforms. They authenticate the platform themselves, so Authenticate
// does not apply to them.
const ChannelsPath = "/channels/"

// settings returns the settings of the channels of an agent.
func (c *Channels) settings(agent string) channel.Live {
	if c.Settings != nil {
		return c.Settings
	}
	s := &channel.Settings{Agents: []channel.Agent{{Name: agent}}, DefaultAgent: agent}
	for _, a := range c.Accounts {
		if a.Adapter != nil { // NewTransport says which one has none
			s.Accounts = append(s.Accounts, channel.Account{Channel: a.Adapter.Channel(), Name: a.Name, Threading: a.Adapter.Traits().Threads})
		}
	}
	return channel.Fixed(s)
}

// addChannels adds what receives from platforms: their doors, and the adapters that fetch.
func (a *assembly) addChannels() error {
	c := a.config
	if c.Channels == nil {
		return nil
	}
	bridge, err := channel.NewBridge(c.Channels.settings(a.name), a.to, []topics.Catalog{a.plan.catalog}, channel.BridgeConfig{Logger: c.Logger})
	if err != nil {
		return err
	}
	a.bridge, a.accounts = bridge, channel.NewChecks(c.Channels.Accounts, channel.CheckConfig{Logger: c.Logger})
	for _, account := range c.Channels.Accounts {
		switch to := account.Adapter.(type) {
		case interface {
			Run(ctx context.Context, to adapter.Receiver) error
		}:
			a.doors = append(a.doors, func(ctx context.Context) error { return to.Run(ctx, bridge) })
		case interface {
			Handler(to adapter.Receiver) http.Handler
		}:
			a.mux.Handle(ChannelsPath+url.PathEscape(account.Adapter.Channel())+"/"+url.PathEscape(account.Name), to.Handler(bridge))
		}
	}
	return nil
}

// Receive implements adapter.Receiver for adapters that the agent neither runs nor gives a door, such as a server of mail. It blocks
// until the agent is ready, within ctx. Without Config.Channels it returns ErrNoChannels.
func (a *Agent) Receive(ctx context.Context, in adapter.Inbound) error {
	if a.config.Channels == nil || !a.config.Parts.has(Doors) {
		return ErrNoChannels
	}
	if err := a.wait(ctx); err != nil {
		return err
	}
	return a.parts.Load().bridge.Receive(ctx, in)
}

// transport returns what sends answers to platforms.
func (c *Channels) transport(agent string) (*channel.Transport, error) {
	return channel.NewTransport(agent, c.settings(agent), c.Accounts, channel.TransportConfig{})
}
