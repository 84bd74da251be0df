package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/turntable-streams/turntable/processors/turn/compact"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/turn/think/anthropic"
	"github.com/turntable-streams/turntable/processors/turn/think/gemini"
	"github.com/turntable-streams/turntable/processors/turn/think/openai"
)

// provider is a provider of real models. Its variables are {prefix}_API_KEY, {prefix}_MODEL and {prefix}_BASE_URL.
type provider struct {
	name, prefix string
	defaultModel string // of {prefix}_MODEL
	open         func(think.Settings) (realModel, error)
}

// realModel is a model that has connections.
type realModel interface {
	think.Model
	Close()
}

// providers are tried in this order.
var providers = []provider{
	{"anthropic", "ANTHROPIC", "claude-haiku-4-5", func(s think.Settings) (realModel, error) { return anthropic.New(s) }},
	{"openai", "OPENAI", "gpt-5.4-mini", func(s think.Settings) (realModel, error) { return openai.New(s) }},
	{"gemini", "GEMINI", "gemini-2.5-flash", func(s think.Settings) (realModel, error) { return gemini.New(s) }},
}

// errProvider is the error of an unknown MODEL_PROVIDER.
var errProvider = errors.New("want script, anthropic, openai or gemini")

// chosenProvider returns the provider that MODEL_PROVIDER names; without it, the first one with an API key. It returns nil
// for the scripted models: MODEL_PROVIDER is script, or no provider has a key.
func chosenProvider(lookup func(string) string) (*provider, error) {
	name := strings.TrimSpace(lookup("MODEL_PROVIDER"))
	if name == "script" {
		return nil, nil
	}
	for i, p := range providers {
		if name == p.name || name == "" && strings.TrimSpace(lookup(p.prefix+"_API_KEY")) != "" {
			return &providers[i], nil
		}
	}
	if name != "" {
		return nil, fmt.Errorf("MODEL_PROVIDER=%q, %w", name, errProvider)
	}
	return nil, nil
}

// chosenModel returns the model of an agent of the example and its compactor: both of the chosen provider, or scripts.
// INPUT_TOKEN_PRICE and OUTPUT_TOKEN_PRICE (dollars per million tokens) replace the provider's prices. The caller calls
// closeModel when they are no longer used.
func chosenModel(
	name string, lookup func(string) string,
) (model think.Model, compactor compact.Compactor, closeModel func(), err error) {
	a, ok := agentModels[name]
	if !ok {
		return nil, nil, nil, fmt.Errorf("no script for agent %q: there are %s and %s", name, orchestrator, worker)
	}
	p, err := chosenProvider(lookup)
	if err != nil {
		return nil, nil, nil, err
	}
	if p == nil {
		return a.script, compact.Func(listQuestions), func() {}, nil
	}
	answers, err := p.model(lookup, think.Settings{System: a.system, Tools: a.tools})
	if err != nil {
		return nil, nil, nil, err
	}
	summaries, err := p.model(lookup, think.Settings{System: summarize})
	if err != nil {
		answers.Close()
		return nil, nil, nil, err
	}
	return answers, askForSummary(summaries), func() { answers.Close(); summaries.Close() }, nil
}

// model returns a model of the provider with the key, name, address and prices of the environment.
func (p *provider) model(lookup func(string) string, s think.Settings) (m realModel, err error) {
	s.Key, s.Model = lookup(p.prefix+"_API_KEY"), strings.TrimSpace(lookup(p.prefix+"_MODEL"))
	s.BaseURL = strings.TrimSpace(lookup(p.prefix + "_BASE_URL"))
	if s.Model == "" {
		s.Model = p.defaultModel
	}
	if s.Prices, err = pricesOf(s.Model, lookup); err != nil {
		return nil, err
	}
	return p.open(s)
}

// pricesOf returns the token prices of the environment; nil, for those of the provider, if it does not set both. Cached
// tokens have the price of other input tokens.
func pricesOf(model string, lookup func(string) string) (think.Prices, error) {
	input, inputErr := price("INPUT_TOKEN_PRICE", lookup)
	output, outputErr := price("OUTPUT_TOKEN_PRICE", lookup)
	if err := errors.Join(inputErr, outputErr); err != nil {
		return nil, err
	}
	if input == nil || output == nil {
		return nil, nil
	}
	return think.Prices{model: {{Input: *input, CacheRead: *input, CacheWrite: *input, Output: *output}}}, nil
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
