package agent

import (
	"context"
	"fmt"
	"net"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/lovoo/goka"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/loopback"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/delegation/delegationhttp"
	"github.com/turntable-streams/turntable/processors/delivery/websocket"
	"github.com/turntable-streams/turntable/processors/fold/invoke"
	"github.com/turntable-streams/turntable/processors/gate/gatehttp"
	"github.com/turntable-streams/turntable/processors/httpserver"
	"github.com/turntable-streams/turntable/processors/peer/peerhttp"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/processors/turn/turnhttp"
	"github.com/turntable-streams/turntable/topics"
)

// The paths of the doors that this package chooses. The others are those of the doors' packages.
const (
	InvokePath    = "/invoke"
	WebSocketPath = "/ws"
	HealthPath    = "/healthz"
)

// corsHeaders are the headers that pages of Origins may send.
var corsHeaders = []string{"Authorization", "Idempotency-Key", "Last-Event-ID"}

// door returns what every door is configured with. What everyone may do is said once, by warnOpen.
func (c *Config) door() auth.Door {
	return auth.Door{Authenticate: c.Authenticate, Open: true, Origins: c.Origins, Headers: corsHeaders, Logger: c.Logger}
}

func (a *assembly) addDoors() error {
	for _, add := range []func() error{a.addInvoke, a.addChat, a.addScreens, a.addChannels, a.addDelegations, a.addPeers, a.addConsole} {
		if err := add(); err != nil {
			return err
		}
	}
	a.mux.HandleFunc("GET "+HealthPath, func(w http.ResponseWriter, r *http.Request) { a.health(w, r, true) })
	if a.config.Pages != nil {
		a.mux.Handle("/", a.config.Pages)
	}
	a.handler = httpserver.WithTrustedProxies(a.mux, a.config.TrustedProxies...)
	return nil
}

func (a *assembly) addInvoke() (err error) {
	c := a.config
	if a.pipeline, err = invoke.NewPipeline(a.name, a.brokers, a.to, invoke.PipelineConfig{Kafka: a.kafka, Gates: c.Approval != nil}); err != nil {
		return err
	}
	d, err := invoke.New(a.pipeline, invoke.Config{Door: c.door()})
	if err != nil {
		return err
	}
	a.mux.Handle(InvokePath, d)
	a.doors, a.ready = append(a.doors, a.pipeline.Run), append(a.ready, a.pipeline.Ready())
	return nil
}

// addChat adds the door of messages and of callbacks of tools.
func (a *assembly) addChat() error {
	c := a.config
	chat := turnhttp.Config{Door: c.door(), CallbackSecrets: []string{c.CallbackSecret}}
	if c.Deliver != nil {
		chat.CallbackServices = c.Deliver.Services.Known
	}
	d, err := turnhttp.New(a.name, a.to, chat)
	if err != nil {
		return err
	}
	a.mux.Handle(turnhttp.ChatPath, d)
	a.mux.Handle(turnhttp.ToolResponsePath, d)
	return nil
}

// addScreens adds the WebSocket and, with approvals, the door of gates, whose index shows them on the WebSocket too.
func (a *assembly) addScreens() error {
	c := a.config
	sockets := websocket.Config{Door: c.door()}
	if c.Approval != nil {
		gates := gatehttp.Config{Door: c.door()}
		index, err := gatehttp.NewIndex(a.name, gates)
		if err != nil {
			return err
		}
		d, err := gatehttp.New(index, a.to, gates)
		if err != nil {
			return err
		}
		a.mux.Handle(gatehttp.GatesPath, d)
		a.mux.Handle(gatehttp.GatesPath+"/", d)
		a.doors = append(a.doors, connected(index.Run, a.brokers, a.kafka))
		sockets.Gates = index
	}
	screen, err := websocket.New(a.name, sockets)
	if err != nil {
		return err
	}
	a.mux.Handle(WebSocketPath, screen)
	a.doors, a.ready = append(a.doors, connected(screen.Run, a.brokers, a.kafka)), append(a.ready, screen.Ready())
	return nil
}

// addDelegations adds the door that shows the tasks of other agents.
func (a *assembly) addDelegations() error {
	c := a.config
	if len(c.Delegates) == 0 {
		return nil
	}
	delegations := delegationhttp.Config{Door: c.door()}
	index, err := delegationhttp.NewIndex(a.name, delegations)
	if err != nil {
		return err
	}
	d, err := delegationhttp.New(index, delegations)
	if err != nil {
		return err
	}
	a.mux.Handle(delegationhttp.DelegationsPath, d)
	a.mux.Handle(delegationhttp.DelegationsPath+"/", d)
	a.doors = append(a.doors, connected(index.Run, a.brokers, a.kafka))
	return nil
}

// addPeers adds the door for the tasks of other instances.
func (a *assembly) addPeers() error {
	c := a.config
	if c.Peers == nil {
		return nil
	}
	peers := peerhttp.Config{Door: c.door()}
	replies, err := peerhttp.NewReplies(a.name, peers)
	if err != nil {
		return err
	}
	d, err := peerhttp.New(replies, a.to, c.Peers, peers)
	if err != nil {
		return err
	}
	for _, path := range []string{"/api/peer/", peerhttp.CardPath} {
		a.mux.Handle(path, d)
	}
	a.doors, a.ready = append(a.doors, connected(replies.Run, a.brokers, a.kafka)), append(a.ready, replies.Ready())
	return nil
}

// Console is a page for operators. console.Config of package console is one. It is an interface, so that programs without one do not
// link it.
type Console interface {
	// For returns the page of an agent: the path below which it is served, its handler, and what it runs meanwhile. groups are those
	// that run in this process, and topology describes all of the agent.
	For(door auth.Door, catalog topics.Catalog, to processors.Publisher, groups map[goka.Group]*processors.Processor,
		topology processors.Topology, budgets turn.Budgets) (root string, h http.Handler, run func(context.Context, []string, ...processors.Option) error, err error)
}

// addConsole adds the page for operators. It trusts no page of another site, and without Authenticate it only shows, unless Open is
// set.
func (a *assembly) addConsole() error {
	c := a.config
	if c.Console == nil {
		return nil
	}
	groups := map[goka.Group]*processors.Processor{}
	for i, p := range a.groups {
		groups[a.plan.graphs[i].Group()] = p
	}
	door := auth.Door{Authenticate: c.Authenticate, Open: c.Open, Logger: c.Logger}
	topology := processors.Describe(a.plan.graphs...).WithCatalog(a.plan.catalog)
	root, h, run, err := c.Console.For(door, a.plan.catalog, a.to, groups, topology, a.plan.budgets)
	if err != nil {
		return fmt.Errorf("console: %w", err)
	}
	a.mux.Handle(root, h)
	a.doors = append(a.doors, connected(run, a.brokers, a.kafka))
	return nil
}

// warnOpen logs that the doors authenticate no one.
func (c *Config) warnOpen(address string) {
	if c.Authenticate == nil && !c.Open {
		c.Logger.Warn("the doors are open: everyone who reaches them may use every session and decide every approval; set Authenticate, "+
			"or Open if that is meant", zap.String("address", address))
	}
}

// health answers with the states of the groups, 503 unless the agent is ready and all of them run. Errors can name sessions and addresses: they are shown
// only where the doors cannot be reached from other machines.
func (a *assembly) health(w http.ResponseWriter, r *http.Request, ready bool) {
	if loopback.Renamed(r) {
		http.Error(w, "this address is known by another name", http.StatusForbidden)
		return
	}
	type state struct {
		processors.Health
		Error string `json:"error,omitempty"`
	}
	host, _, _ := net.SplitHostPort(a.config.Listen)
	status, states := http.StatusOK, map[string]state{}
	if !ready {
		status = http.StatusServiceUnavailable
	}
	for i, p := range a.groups {
		h := p.Health()
		s := state{Health: h}
		if h.Err != nil && loopback.Is(host) {
			s.Error = h.Err.Error()
		}
		states[string(a.plan.graphs[i].Group())] = s
		if h.State != processors.Running {
			status = http.StatusServiceUnavailable
		}
	}
	body := map[string]any{"groups": states, "ready": ready}
	if a.accounts != nil {
		failed := a.accounts.Failed()
		for name := range failed {
			if !loopback.Is(host) {
				failed[name] = "not accepted by the platform; the log says why"
			}
		}
		body["channels"] = failed
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.MarshalWrite(w, body, json.Deterministic(true))
}
