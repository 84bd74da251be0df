package anthropic

import (
	"context"
	_ "embed"
	"iter"
	"slices"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/param"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/turn/think/internal/provider"
)

const defaultMaxTokens = 4096

// rules are what the API accepts, and Bedrock with it.
var rules = provider.Rules{Name: provider.AnyName, ID: provider.AnyName}

//go:embed prices.json
var priceTable []byte

// Prices returns list prices of the Claude API, without batch discounts and regional surcharges. The table is a
// snapshot of 2026 and can be outdated. Where the cost matters, check it, or set think.Settings.Prices. The caller owns the
// table.
func Prices() think.Prices {
	p, err := think.ReadPrices(priceTable)
	if err != nil {
		panic(err) // the table is part of the package
	}
	return p
}

// Model implements think.Model and think.Streamer. It is safe for concurrent use.
type Model struct {
	settings think.Settings
	options  []option.RequestOption
	provider *provider.Client
	client   sdk.Client
	tools    []sdk.ToolUnionParam
}

// New returns a model. It opens no connection. The error wraps think.ErrSettings. opts are options of the SDK; they
// override the settings.
func New(s think.Settings, opts ...option.RequestOption) (*Model, error) {
	if s.MaxTokens == 0 {
		s.MaxTokens = defaultMaxTokens
	}
	c, err := provider.New("anthropic", s, Prices(), rules, classify)
	if err != nil {
		return nil, err
	}
	m := &Model{settings: s, options: opts, provider: c, tools: toolsOf(c.Settings)}
	all := []option.RequestOption{option.WithAPIKey(s.Key), option.WithHTTPClient(c.HTTP), option.WithMaxRetries(0)}
	if s.BaseURL != "" {
		all = append(all, option.WithBaseURL(s.BaseURL))
	}
	m.client = sdk.NewClient(append(all, opts...)...)
	return m, nil
}

// toolsOf returns the tools. The last one ends a cached prefix, unless the system prompt does.
func toolsOf(s think.Settings) []sdk.ToolUnionParam {
	var tools []sdk.ToolUnionParam
	for i, t := range s.Tools {
		tool := &sdk.ToolParam{
			Name: t.Name, InputSchema: param.Override[sdk.ToolInputSchemaParam](jsontext.Value(t.InputSchema)),
		}
		if t.Description != "" {
			tool.Description = sdk.String(t.Description)
		}
		if s.System == "" && i == len(s.Tools)-1 {
			tool.CacheControl = sdk.NewCacheControlEphemeralParam()
		}
		tools = append(tools, sdk.ToolUnionParam{OfTool: tool})
	}
	return tools
}

// WithTools implements think.ToolUser.
func (m *Model) WithTools(tools ...think.Tool) (think.Model, error) {
	s := m.settings
	s.Tools = slices.Concat(s.Tools, tools)
	return New(s, m.options...)
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
		stream := m.client.Messages.NewStreaming(ctx, sdk.MessageNewParams{
			Model: m.provider.Settings.Model, MaxTokens: m.provider.Settings.MaxTokens, System: m.system(s),
			Messages: messageParams(messages), Tools: m.tools,
			CacheControl: sdk.NewCacheControlEphemeralParam(), // the end of the conversation, for the next step
		}, option.WithHeader("Idempotency-Key", provider.IdempotencyKey(s)))
		defer stream.Close()
		r := reader{client: m.provider, reply: reply}
		for !reply.Stopped && stream.Next() {
			r.event(stream.Current())
		}
		if err := stream.Err(); err != nil {
			return err
		}
		return r.end()
	})
}

// system returns the sections of the system prompt. The fixed one ends a cached prefix.
func (m *Model) system(s think.Step) []sdk.TextBlockParam {
	sections, fixed := m.provider.System(s)
	var blocks []sdk.TextBlockParam
	for i, text := range sections {
		block := sdk.TextBlockParam{Text: text}
		if fixed && i == 0 {
			block.CacheControl = sdk.NewCacheControlEphemeralParam()
		}
		blocks = append(blocks, block)
	}
	return blocks
}
