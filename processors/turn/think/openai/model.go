package openai

import (
	"context"
	_ "embed"
	"iter"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/shared"

	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/turn/think/internal/provider"
)

//go:embed prices.json
var priceTable []byte

// Prices returns list prices of OpenAI's API in its standard tier. Models that cost more for long prompts have no price for
// those prompts. The table is a snapshot of 2026 and can be outdated. Where the cost matters, check it, or set
// think.Settings.Prices. The caller owns the table.
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
	tools    []sdk.ChatCompletionToolUnionParam
	official bool // the API is OpenAI's own
}

// New returns a model. It opens no connection. The error wraps think.ErrSettings. opts are options of the SDK; they
// override the settings.
func New(s think.Settings, opts ...option.RequestOption) (*Model, error) {
	c, err := provider.New("openai", s, Prices(), rulesOf(s), classify)
	if err != nil {
		return nil, err
	}
	m := &Model{settings: s, options: opts, provider: c, official: s.BaseURL == "" && os.Getenv("OPENAI_BASE_URL") == ""}
	for _, t := range c.Settings.Tools {
		m.tools = append(m.tools, toolOf(t))
	}
	all := []option.RequestOption{option.WithAPIKey(s.Key), option.WithHTTPClient(c.HTTP), option.WithMaxRetries(0)}
	if s.BaseURL != "" {
		all = append(all, option.WithBaseURL(s.BaseURL))
	}
	m.client = sdk.NewClient(append(all, opts...)...)
	return m, nil
}

// toolOf returns a tool. Its schema is passed on byte for byte: the SDK's map would be written in another order.
func toolOf(t think.Tool) sdk.ChatCompletionToolUnionParam {
	raw, _ := jsontext.AppendQuote([]byte(`{"type":"function","function":{"name":`), t.Name)
	if t.Description != "" {
		raw, _ = jsontext.AppendQuote(append(raw, `,"description":`...), t.Description)
	}
	raw = append(append(append(raw, `,"parameters":`...), t.InputSchema...), "}}"...)
	return param.Override[sdk.ChatCompletionToolUnionParam](jsontext.Value(raw))
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
		params := sdk.ChatCompletionNewParams{
			Model: shared.ChatModel(m.provider.Settings.Model), Tools: m.tools,
			Messages:      append(m.system(s), messageParams(messages)...),
			StreamOptions: sdk.ChatCompletionStreamOptionsParam{IncludeUsage: sdk.Bool(true)},
		}
		if m.provider.Settings.MaxTokens > 0 {
			params.MaxCompletionTokens = sdk.Int(m.provider.Settings.MaxTokens)
		}
		if m.official { // other servers can reject a parameter that they do not know
			params.PromptCacheKey = sdk.String(provider.SessionKey(s))
		}
		stream := m.open(ctx, params, provider.IdempotencyKey(s))
		defer stream.Close()
		r := reader{client: m.provider, reply: reply}
		for !reply.Stopped && stream.Next() {
			if err := r.chunk(stream.Current()); err != nil {
				return err
			}
		}
		if err := stream.Err(); err != nil {
			return err
		}
		return r.end()
	})
}

// open begins a streamed completion, as the SDK's NewStreaming does, and reads it without members error that are null.
func (m *Model) open(
	ctx context.Context, params sdk.ChatCompletionNewParams, key string,
) *ssestream.Stream[sdk.ChatCompletionChunk] {
	var response *http.Response
	err := m.client.Post(ctx, "chat/completions", params, &response, option.WithJSONSet("stream", true),
		option.WithHeader("Idempotency-Key", key))
	if err != nil {
		return ssestream.NewStream[sdk.ChatCompletionChunk](nil, err)
	}
	return ssestream.NewStream[sdk.ChatCompletionChunk](&chunks{Decoder: ssestream.NewDecoder(response)}, nil)
}

// system returns the sections of the system prompt as one message, because some servers accept no second one. The fixed one
// is first, so that it is cached.
func (m *Model) system(s think.Step) []sdk.ChatCompletionMessageParamUnion {
	sections, _ := m.provider.System(s)
	if len(sections) == 0 {
		return nil
	}
	return []sdk.ChatCompletionMessageParamUnion{sdk.SystemMessage(strings.Join(sections, "\n\n"))}
}
