package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/examples/multiagent/claude"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/topics"
)

// modelWorker is the model worker of an agent.
type modelWorker struct {
	agent   string
	brokers []string
	model   think.Model
	logger  *zap.Logger

	client []processors.Option
	think  []think.Option
}

// run answers think requests until ctx ends.
func (m modelWorker) run(ctx context.Context) error {
	to, err := processors.NewPublisher(m.brokers, m.client...)
	if err != nil {
		return err
	}
	worker, err := think.New(m.agent, to, m.model, append([]think.Option{think.WithLogger(m.logger)}, m.think...)...)
	if err != nil {
		return err
	}
	return errors.Join(worker.Run(ctx, m.brokers, m.client...), to.Close())
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
	tools  []claude.Tool
}

var agentModels = map[string]agentModel{
	orchestrator: {
		script: orchestrate,
		system: "You answer questions. You cannot calculate yourself: have every calculation done by delegate_task, one " +
			"task for each, all of them at once. Then answer in one short sentence with all the values, as plain digits.",
		tools: []claude.Tool{{
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

// realModel reports whether the environment has an API key.
func realModel(lookup func(string) string) bool {
	return strings.TrimSpace(lookup("ANTHROPIC_API_KEY")) != ""
}

// chosenModel returns the model of an agent of the example. With ANTHROPIC_API_KEY it is a real model, configured by
// ANTHROPIC_MODEL, ANTHROPIC_BASE_URL, INPUT_TOKEN_PRICE and OUTPUT_TOKEN_PRICE (dollars per million tokens); otherwise it is
// a script. The caller calls closeModel when the model is no longer used.
func chosenModel(name string, lookup func(string) string) (model think.Model, closeModel func(), err error) {
	a, ok := agentModels[name]
	if !ok {
		return nil, nil, fmt.Errorf("no script for agent %q: there are %s and %s", name, orchestrator, worker)
	}
	if !realModel(lookup) {
		return a.script, func() {}, nil
	}
	s := claude.Settings{
		Key: lookup("ANTHROPIC_API_KEY"), Name: strings.TrimSpace(lookup("ANTHROPIC_MODEL")),
		System: a.system, Tools: a.tools,
	}
	if s.Prices, err = pricesOf(s.Name, lookup); err != nil {
		return nil, nil, err
	}
	c, err := claude.New(s)
	if err != nil {
		return nil, nil, err
	}
	return c, c.Close, nil
}

// defaultPrices are the prices of claude.DefaultName.
var defaultPrices = claude.Prices{Input: 1, Output: 5}

// pricesOf returns the token prices of a model: those of the environment if it sets both, defaultPrices for the default
// model, otherwise nil.
func pricesOf(model string, lookup func(string) string) (*claude.Prices, error) {
	input, inputErr := price("INPUT_TOKEN_PRICE", lookup)
	output, outputErr := price("OUTPUT_TOKEN_PRICE", lookup)
	if err := errors.Join(inputErr, outputErr); err != nil {
		return nil, err
	}
	switch {
	case input != nil && output != nil:
		return &claude.Prices{Input: *input, Output: *output}, nil
	case model == "" || model == claude.DefaultName:
		prices := defaultPrices
		return &prices, nil
	default:
		return nil, nil
	}
}

// price returns a price of the environment, nil if it is not set.
func price(name string, lookup func(string) string) (*float64, error) {
	text := strings.TrimSpace(lookup(name))
	if text == "" {
		return nil, nil
	}
	p, err := strconv.ParseFloat(text, 64)
	if err != nil || p < 0 || math.IsInf(p, 0) || math.IsNaN(p) {
		return nil, fmt.Errorf("%s=%q, want dollars per million tokens", name, text)
	}
	return &p, nil
}
