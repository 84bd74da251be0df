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

// thinker is the model worker of an agent.
type thinker struct {
	agent   string
	brokers []string
	model   think.Model
	logger  *zap.Logger

	client []processors.Option
	think  []think.Option
}

// run ends with ctx.
func (m thinker) run(ctx context.Context) error {
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

// part is what an agent of the example is to its model.
type part struct {
	script think.Func
	system string
	tools  []claude.Tool
}

var parts = map[string]part{
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

// realModel reports whether the environment has a key for one.
func realModel(lookup func(string) string) bool {
	return strings.TrimSpace(lookup("ANTHROPIC_API_KEY")) != ""
}

// chosenModel is the model of an agent: Claude where the environment has a key (ANTHROPIC_API_KEY, ANTHROPIC_MODEL,
// ANTHROPIC_BASE_URL, INPUT_TOKEN_PRICE and OUTPUT_TOKEN_PRICE in dollars for a million tokens), else a script. The
// caller calls done when it is not asked any more.
func chosenModel(name string, lookup func(string) string) (model think.Model, done func(), err error) {
	p, ok := parts[name]
	if !ok {
		return nil, nil, fmt.Errorf("no script for agent %q: there are %s and %s", name, orchestrator, worker)
	}
	if !realModel(lookup) {
		return p.script, func() {}, nil
	}
	s := claude.Settings{
		Key: lookup("ANTHROPIC_API_KEY"), Name: strings.TrimSpace(lookup("ANTHROPIC_MODEL")),
		System: p.system, Tools: p.tools,
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

// defaultPrices are those of claude.DefaultName.
var defaultPrices = claude.Prices{Input: 1, Output: 5}

// pricesOf are what a model's tokens cost: as the environment says, both or none; else the default model's, and for any
// other none.
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

func price(name string, lookup func(string) string) (*float64, error) {
	text := strings.TrimSpace(lookup(name))
	if text == "" {
		return nil, nil
	}
	p, err := strconv.ParseFloat(text, 64)
	if err != nil || p < 0 || math.IsInf(p, 0) || math.IsNaN(p) {
		return nil, fmt.Errorf("%s=%q, want dollars for a million tokens", name, text)
	}
	return &p, nil
}
