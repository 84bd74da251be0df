package main

import (
	"context"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/agent"
	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/console"
	"github.com/turntable-streams/turntable/processors/delivery/sink"
	"github.com/turntable-streams/turntable/processors/memoir/updater"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/turn/tools"
	"github.com/turntable-streams/turntable/topics"
)

// The two agents.
const (
	orchestrator = "orchestrator"
	worker       = "worker"
)

// newAgents returns the orchestrator, whose calls can be answered at an address, and the worker.
func newAgents(s settings, publisher processors.Publisher, callback net.Addr, logger *zap.Logger) (front, back *agent.Agent, err error) {
	c := agent.Config{
		Brokers: s.brokers, Logger: logger,
		// A killed static member rejoins its groups immediately, without waiting for the session timeout of its former process.
		Kafka: []processors.Option{processors.WithInstance(s.instance)},
	}
	if s.data != "" {
		c.StateDir = filepath.Join(s.data, "tables")
	}
	callbacks, err := sink.ParseServices(orchestrator + ":http://" + callback.String())
	if err != nil {
		return nil, nil, err
	}
	if back, err = newWorker(c, callbacks); err != nil {
		return nil, nil, err
	}
	front, err = newOrchestrator(c, newDelegate(publisher, back.Topics()), s)
	return front, back, err
}

// newWorker returns the agent that does the delegated tasks. It sends its answers to the services of callbacks.
func newWorker(c agent.Config, callbacks sink.Services) (*agent.Agent, error) {
	c.Model = think.Func(work)
	c.Tools = []tools.Tool{calculator}
	c.Deliver = &agent.Deliver{Services: callbacks}
	c.Parts = agent.Groups | agent.Workers | agent.Senders // no doors: its tasks are records
	return agent.New(worker, c)
}

// callbackSecret signs the tokens with which the worker may answer the orchestrator's calls. A real program reads one of its
// environment: everyone who knows it can answer calls.
const callbackSecret = "a secret for this example, no other program may use it"

// newOrchestrator returns the agent that talks to the user. delegate is the tool with which it calls the other one.
func newOrchestrator(c agent.Config, delegate tools.Tool, s settings) (*agent.Agent, error) {
	c.Model = think.Func(orchestrate)
	c.Tools = []tools.Tool{calculator, clock, delegate}
	c.CallbackSecret = callbackSecret
	// Its doors are open for callbacks only, which have their tokens.
	c.Authenticate = func(*http.Request) (auth.Caller, error) { return auth.Caller{}, auth.ErrRejected }
	if !s.plain {
		// The console is for everyone on this machine. A real program has Authenticate.
		c.Console = console.Config{Door: auth.Door{Open: true}}
		c.Costs, c.Latencies = true, true
		c.Approval = &approval.Policy{Default: approval.Allow, Rules: []approval.Rule{{
			Tool: calculator.Name, Args: map[string]approval.Condition{"/operator": {Equals: topics.Raw(`"/"`)}}, Effect: approval.Ask,
			Edit: true, Message: "May it divide?", TTL: 24 * time.Hour,
		}}}
	}
	if s.approve {
		c.Approval = &approval.Policy{Default: approval.Allow, Rules: []approval.Rule{
			{Tool: delegate.Name, Effect: approval.Ask, Message: "May the orchestrator delegate this task?"},
		}}
	}
	if s.memory {
		c.Memory = &agent.Memory{Updater: updater.Scripted(noted)}
	}
	return agent.New(orchestrator, c)
}

// createTopics creates missing topics, because the journal reads them before the agents run.
func createTopics(ctx context.Context, brokers []string, agents ...*agent.Agent) error {
	config, _, err := processors.ClientConfig(brokers)
	if err != nil {
		return err
	}
	for _, a := range agents {
		if err := topics.EnsureCluster(ctx, brokers, config, a.Topics()); err != nil {
			return err
		}
	}
	return nil
}
