package gemini

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"iter"
	"math"
	"net/http"
	"regexp"
	"slices"

	"github.com/go-json-experiment/json"
	"google.golang.org/genai"

	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/turn/think/internal/provider"
)

//go:embed prices.json
var priceTable []byte

// Prices returns list prices of the Gemini API for text and images in its standard tier, without the storage of explicit
// caches. The table is a snapshot of 2026 and can be outdated. Where the cost matters, check it, or set
// think.Settings.Prices. The caller owns the table.
func Prices() think.Prices {
	p, err := think.ReadPrices(priceTable)
	if err != nil {
		panic(err) // the table is part of the package
	}
	return p
}

// rules are what the API accepts.
var rules = provider.Rules{
	Name: regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$`), ID: regexp.MustCompile(`^[a-zA-Z0-9_.:-]{1,64}$`),
}

// Model implements think.Model and think.Streamer. It is safe for concurrent use.
type Model struct {
	settings  think.Settings
	provider  *provider.Client
	client    *genai.Client
	tools     []*genai.Tool
	configure []func(*genai.GenerateContentConfig)
}

// New returns a model. It opens no connection. The error wraps think.ErrSettings. configure functions change the
// configuration of every request, for example its safety settings; they are called from several goroutines.
func New(s think.Settings, configure ...func(*genai.GenerateContentConfig)) (*Model, error) {
	c, err := provider.New("gemini", s, Prices(), rules, classify)
	if err != nil {
		return nil, err
	}
	if s.MaxTokens > math.MaxInt32 {
		return nil, fmt.Errorf("%w: gemini: MaxTokens exceeds 32 bits", think.ErrSettings)
	}
	m := &Model{settings: s, provider: c, configure: configure}
	m.client, err = genai.NewClient(context.Background(), &genai.ClientConfig{
		APIKey: s.Key, Backend: genai.BackendGeminiAPI, HTTPClient: c.HTTP,
		HTTPOptions: genai.HTTPOptions{BaseURL: s.BaseURL},
	})
	if err != nil { // its text contains the key
		return nil, fmt.Errorf("%w: gemini: the SDK rejects the settings", think.ErrSettings)
	}
	var functions []*genai.FunctionDeclaration
	for _, t := range c.Settings.Tools {
		var schema any
		if err := json.Unmarshal(t.InputSchema, &schema); err != nil {
			return nil, fmt.Errorf("%w: gemini: schema of tool %q: %w", think.ErrSettings, t.Name, err)
		}
		functions = append(functions, &genai.FunctionDeclaration{
			Name: t.Name, Description: t.Description, ParametersJsonSchema: schema,
		})
	}
	if functions != nil {
		m.tools = []*genai.Tool{{FunctionDeclarations: functions}}
	}
	return m, nil
}

// WithTools implements think.ToolUser.
func (m *Model) WithTools(tools ...think.Tool) (think.Model, error) {
	s := m.settings
	s.Tools = slices.Concat(s.Tools, tools)
	return New(s, m.configure...)
}

// Close closes idle connections.
func (m *Model) Close() { m.provider.Close() }

// Think implements think.Model.
func (m *Model) Think(ctx context.Context, s think.Step) (think.Reply, error) {
	reply, _, err := think.Collect(m.Stream(ctx, s))
	return reply, err
}

// Stream implements think.Streamer.
func (m *Model) Stream(ctx context.Context, s think.Step) iter.Seq2[think.Delta, error] {
	return m.provider.Stream(ctx, s, func(ctx context.Context, messages []provider.Message, reply *provider.Reply) error {
		name := m.provider.Settings.Model
		contents, err := contentsOf(messages, needsSignature(name))
		if err != nil {
			return err
		}
		r := reader{client: m.provider, reply: reply}
		for chunk, err := range m.client.Models.GenerateContentStream(ctx, name, contents, m.config(s)) {
			if err != nil {
				return err
			}
			if r.chunk(chunk); reply.Stopped {
				return nil
			}
		}
		return r.end()
	})
}

// config returns the configuration of a step's request.
func (m *Model) config(s think.Step) *genai.GenerateContentConfig {
	off := false
	c := &genai.GenerateContentConfig{
		Tools: m.tools, MaxOutputTokens: int32(m.provider.Settings.MaxTokens), // New has checked the range
		AutomaticContinuation: &off, // the SDK would make further requests
	}
	sections, _ := m.provider.System(s)
	var parts []*genai.Part
	for _, text := range sections {
		parts = append(parts, &genai.Part{Text: text})
	}
	if parts != nil {
		c.SystemInstruction = &genai.Content{Parts: parts}
	}
	for _, f := range m.configure {
		f(c)
	}
	return c
}

// classify reads an error response of the SDK.
func classify(err error) (provider.Response, bool) {
	var api genai.APIError
	if !errors.As(err, &api) {
		return provider.Response{}, false
	}
	e := provider.Response{Status: api.Code, Type: api.Status, After: delayOf(api.Details)}
	if (e.Status == 0 || e.Status == http.StatusOK) && e.Type != "" { // in a stream
		e.Status = provider.StatusOf(e.Type)
	}
	return e, true
}
