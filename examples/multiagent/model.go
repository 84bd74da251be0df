package main

import (
	"context"
	"errors"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn/compact"
	"github.com/turntable-streams/turntable/processors/turn/think"
	workers "github.com/turntable-streams/turntable/processors/worker"
	"github.com/turntable-streams/turntable/topics"
)

// modelWorker runs the model of an agent, and its compactor.
type modelWorker struct {
	agent     string
	brokers   []string
	model     think.Model
	compactor compact.Compactor
	logger    *zap.Logger

	client []processors.Option
	think  think.Config
}

// run answers think requests, and requests for summaries, until ctx ends.
func (m modelWorker) run(ctx context.Context) error {
	to, err := processors.NewPublisher(m.brokers, m.client...)
	if err != nil {
		return err
	}
	config := m.think
	config.Logger = m.logger
	model, modelErr := think.New(m.agent, to, m.model, config)
	compactor, compactorErr := compact.New(m.agent, to, m.compactor, compact.Config{Config: workers.Config{Logger: m.logger}})
	if err := errors.Join(modelErr, compactorErr); err != nil {
		return errors.Join(err, to.Close())
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return model.Run(ctx, m.brokers, m.client...) })
	group.Go(func() error { return compactor.Run(ctx, m.brokers, m.client...) })
	return errors.Join(group.Wait(), to.Close())
}

// The agents of the example.
const (
	orchestrator = "orchestrator"
	worker       = "worker"
)

// agentModel is the model of one of the agents: a script, or the prompt and tools for a real model.
type agentModel struct {
	script think.Func
	system string
	tools  []think.Tool
}

var agentModels = map[string]agentModel{
	orchestrator: {
		script: orchestrate,
		system: "You answer questions. You cannot calculate yourself: have every calculation done by delegate_task, one " +
			"task for each, all of them at once. Then answer in one short sentence with all the values, as plain digits.",
		tools: []think.Tool{{
			Name:        delegateTask,
			Description: "Gives one task, in plain words and with all that is needed for it, to a colleague, who answers.",
			InputSchema: topics.Raw(`{"type":"object","properties":{"task":{"type":"string"}},"required":["task"]}`),
		}},
	},
	worker: {
		script: work,
		system: "You are given one task. Answer it in one short sentence, with numbers as plain digits.",
	},
}
