package peerwire

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// The constants of a card.
const (
	Protocol        = "hybridclaw-peer"
	ProtocolVersion = "1"
)

// ErrCard is wrapped by the errors about a card that is not well-formed. The errors do not quote it.
var ErrCard = errors.New("wire: malformed agent card")

// maxAgents is the largest number of agents of a card.
const maxAgents = 10_000

// Agent is an agent of a card.
type Agent struct {
	ID   string
	Name string // may be empty
}

// Card is an instance's description of itself.
type Card struct {
	InstanceID   string
	InstanceName string
	AppVersion   string
	// Agents are the agents that tasks may name. Body writes the agent DefaultAgent first, then the others by ID.
	Agents       []Agent
	DefaultAgent string // not in the body
	// Delegate says that the instance accepts tasks.
	Delegate bool
	// Idempotent says that a task that is sent again with the same ID is not run again. HybridClaw's instances do not say so.
	Idempotent bool
	// Async says that the instance answers a request with Prefer: respond-async with 202 and a location to poll.
	Async bool
	// Cancel says that a task can be cancelled with DELETE.
	Cancel bool
}

// Body returns the body of the card.
func (c Card) Body() []byte {
	type agent struct {
		ID   string  `json:"id"`
		Name *string `json:"name"`
	}
	sorted := slices.Clone(c.Agents)
	slices.SortStableFunc(sorted, func(a, b Agent) int {
		switch {
		case a.ID == b.ID:
			return 0
		case a.ID == c.DefaultAgent:
			return -1
		case b.ID == c.DefaultAgent:
			return 1
		}
		return strings.Compare(a.ID, b.ID)
	})
	agents := []agent{}
	for _, a := range sorted {
		agents = append(agents, agent{a.ID, orNull(a.Name)})
	}
	type capabilities struct {
		Delegate   bool `json:"delegate"`
		Streaming  bool `json:"streaming"`
		Idempotent bool `json:"idempotent"`
		Async      bool `json:"async"`
		Cancel     bool `json:"cancel"`
	}
	return pretty(struct {
		Protocol        string       `json:"protocol"`
		ProtocolVersion string       `json:"protocolVersion"`
		InstanceID      string       `json:"instanceId"`
		InstanceName    string       `json:"instanceName"`
		AppVersion      string       `json:"appVersion"`
		Agents          []agent      `json:"agents"`
		Capabilities    capabilities `json:"capabilities"`
	}{
		Protocol, ProtocolVersion, c.InstanceID, c.InstanceName, c.AppVersion, agents,
		capabilities{Delegate: c.Delegate, Idempotent: c.Idempotent, Async: c.Async, Cancel: c.Cancel},
	})
}

// ReadCard reads a card. The error wraps ErrCard if the body is larger than MaxCard, is no JSON object, or lacks the protocol,
// a text instanceId, a text appVersion or a list of agents. The protocol version is not checked. Capabilities that are absent
// are false.
func ReadCard(body []byte) (Card, error) {
	f, err := read(body, MaxCard)
	if err != nil {
		return Card{}, fmt.Errorf("%w: %w", ErrCard, err)
	}
	if protocol, _, _ := f.text("protocol"); protocol != Protocol {
		return Card{}, fmt.Errorf("%w: another protocol", ErrCard)
	}
	var c Card
	for name, field := range map[string]*string{"instanceId": &c.InstanceID, "appVersion": &c.AppVersion} {
		text, given, ok := f.text(name)
		if !given || !ok || Length(text) > MaxID {
			return Card{}, fmt.Errorf("%w: instanceId and appVersion: want texts", ErrCard)
		}
		*field = text
	}
	if text, _, ok := f.text("instanceName"); ok && Length(text) <= MaxID {
		c.InstanceName = text
	}
	elements, given, ok := f.elements("agents", maxAgents)
	if !given || !ok {
		return Card{}, fmt.Errorf("%w: agents: want a list of at most %d", ErrCard, maxAgents)
	}
	for _, v := range elements {
		a, err := object(v)
		id, given, ok := a.text("id")
		name, _, nameOK := a.text("name")
		if err != nil || !given || !ok || !nameOK || Length(id) > MaxID || Length(name) > MaxID {
			return Card{}, fmt.Errorf("%w: agents: want objects with id and name", ErrCard)
		}
		c.Agents = append(c.Agents, Agent{ID: id, Name: name})
	}
	if capabilities, err := object(f["capabilities"]); err == nil {
		c.Delegate, c.Idempotent = capabilities.isTrue("delegate"), capabilities.isTrue("idempotent")
		c.Async, c.Cancel = capabilities.isTrue("async"), capabilities.isTrue("cancel")
	}
	return c, nil
}

// isTrue reports whether a member is the boolean true.
func (f fields) isTrue(name string) bool { return string(f[name]) == "true" }
