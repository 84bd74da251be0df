// Package parts has the workers of an agent without their connection to Kafka: package agent connects them, and package
// agenttest runs them in a test.
package parts

import (
	"context"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/turn/tools"
	"github.com/turntable-streams/turntable/processors/worker"
)

// Worker is a worker of an agent.
type Worker struct {
	// Topic has the records that Handle handles.
	Topic string
	// Run handles the records until ctx ends.
	Run func(ctx context.Context, brokers []string, opts ...processors.Option) error
	// Handle handles one record and returns when it is settled.
	Handle func(ctx context.Context, r processors.Inbound) error
	// Observe is told of each record of message-output; nil if the worker does not depend on turns.
	Observe func(r processors.Inbound)
}

// Options are what the workers are made with.
type Options struct {
	To     processors.Publisher
	Model  think.Model
	Config worker.Config // of all workers
	// Tool returns what is run for a tool of Config.Tools, given its function; nil runs the function.
	Tool func(name string, f tools.Func) tools.Func
}

// Of returns the workers of an agent, an *agent.Agent, and the names of the tools that its groups answer. Package agent sets it.
// The agent has no method for it, because only tests need the workers alone.
var Of func(agent any, o Options) (workers []Worker, given []string, err error)
