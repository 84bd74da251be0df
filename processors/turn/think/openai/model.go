package openai

import (
	"cmp"
	"context"
	_ "embed"
	"iter"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

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
	provider *provider.Client
	address  *url.URL
	headers  http.Header
	tools    jsontext.Value
	change   []func(*http.Request)
	official bool // the API is OpenAI's own
}

// New returns a model. It opens no connection. The error wraps think.ErrSettings. change functions change every request before it is
// sent, for example its headers, its URL or its body (see WithMember); they are called from several goroutines, and once for each
// attempt. The http.Client cannot be replaced.
func New(s think.Settings, change ...func(*http.Request)) (*Model, error) {
	c, err := provider.New("openai", s, Prices(), rulesOf(s), func(error) (r provider.Response, ok bool) { return r, false })
	if err != nil {
		return nil, err
	}
	base := cmp.Or(s.BaseURL, os.Getenv("OPENAI_BASE_URL"))
	address, err := addressOf(cmp.Or(base, defaultURL))
	if err != nil {
		return nil, err
	}
	headers, err := headersOf(s.Key)
	if err != nil {
		return nil, err
	}
	return &Model{
		settings: s, provider: c, address: address, headers: headers, tools: toolsOf(c.Settings.Tools), change: change,
		official: base == "",
	}, nil
}

// WithTools implements think.ToolUser.
func (m *Model) WithTools(tools ...think.Tool) (think.Model, error) {
	s := m.settings
	s.Tools = slices.Concat(s.Tools, tools)
	return New(s, m.change...)
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
		body := request{
			Model: m.provider.Settings.Model, Messages: append(m.system(s), messagesOf(messages)...), Tools: m.tools,
			MaxTokens: m.provider.Settings.MaxTokens, Stream: true, StreamOptions: streamOptions{IncludeUsage: true},
		}
		if m.official { // other servers can reject a parameter that they do not know
			body.PromptCacheKey = provider.SessionKey(s)
		}
		response, err := m.post(ctx, body, provider.IdempotencyKey(s))
		if err != nil {
			return err
		}
		defer func() { _ = response.Body.Close() }()
		r := reader{client: m.provider, reply: reply}
		for data, err := range provider.Events(response.Body) {
			if err == nil {
				err = r.chunk(data)
			}
			if err != nil {
				return err
			}
			if reply.Stopped {
				break
			}
		}
		return r.end()
	})
}

// system returns the sections of the system prompt as one message, because some servers accept no second one. The fixed one
// is first, so that it is cached.
func (m *Model) system(s think.Step) []message {
	sections, _ := m.provider.System(s)
	if len(sections) == 0 {
		return nil
	}
	return []message{{Role: "system", Content: strings.Join(sections, "\n\n")}}
}
