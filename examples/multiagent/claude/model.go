package claude

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/param"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/topics"
)

// ErrSettings is wrapped by every error of New.
var ErrSettings = errors.New("claude: bad settings")

// Settings configure a Model. Zero fields have the defaults that are named here.
type Settings struct {
	// Key is the API key, a secret. Required.
	Key string
	// Name is the name of the model (default DefaultName).
	Name string
	// System is the system prompt (default none).
	System string
	// Tools are the tools that the model may call (default none).
	Tools []Tool
	// MaxTokens is the largest number of output tokens of a step (default 4096).
	MaxTokens int64
	// Prices are the token prices. If nil, replies have no cost.
	Prices *Prices
	// Attempts is the largest number of requests per step (default 5).
	Attempts int
	// Timeout is how long a request may take (default 2 minutes).
	Timeout time.Duration
}

// Tool is a tool that the model may call.
type Tool struct {
	Name        string
	Description string
	InputSchema topics.Raw // a JSON schema of an object
}

// DefaultName is the default of Settings.Name.
const DefaultName = string(anthropic.ModelClaudeHaiku4_5_20251001)

const (
	defaultMaxTokens = 4096
	defaultAttempts  = 5
	defaultTimeout   = 2 * time.Minute
	// maxResponse bounds the body of a response, in bytes.
	maxResponse = 16 << 20
)

// Model implements think.Model. It is safe for concurrent use.
type Model struct {
	settings Settings
	client   anthropic.Client
	http     *http.Client
	tools    []anthropic.ToolUnionParam
}

// New returns a model. It opens no connection. The environment variable ANTHROPIC_BASE_URL sets the API's address. opts are
// options of the SDK; they override all settings.
func New(s Settings, opts ...option.RequestOption) (*Model, error) {
	if strings.TrimSpace(s.Key) == "" {
		return nil, fmt.Errorf("%w: Key is blank", ErrSettings)
	}
	if s.MaxTokens < 0 || s.Attempts < 0 || s.Timeout < 0 {
		return nil, fmt.Errorf("%w: MaxTokens, Attempts and Timeout must not be negative", ErrSettings)
	}
	fill(&s.Name, DefaultName)
	fill(&s.MaxTokens, defaultMaxTokens)
	fill(&s.Attempts, defaultAttempts)
	fill(&s.Timeout, defaultTimeout)
	m := &Model{settings: s, http: &http.Client{
		Transport: http.DefaultTransport.(*http.Transport).Clone(),
		// A redirect would send the key to another address.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	for _, t := range s.Tools {
		schema := jsontext.Value(t.InputSchema)
		if strings.TrimSpace(t.Name) == "" || schema.Kind() != '{' || !schema.IsValid() {
			return nil, fmt.Errorf("%w: tool %q: the name is blank or the schema is not an object", ErrSettings, t.Name)
		}
		m.tools = append(m.tools, anthropic.ToolUnionParam{OfTool: &anthropic.ToolParam{
			Name: t.Name, Description: anthropic.String(t.Description),
			InputSchema: param.Override[anthropic.ToolInputSchemaParam](schema),
		}})
	}
	m.client = anthropic.NewClient(append([]option.RequestOption{
		option.WithAPIKey(s.Key), option.WithHTTPClient(m.http), option.WithMaxRetries(s.Attempts - 1),
		option.WithRequestTimeout(s.Timeout), option.WithMiddleware(bounded),
	}, opts...)...)
	return m, nil
}

// fill sets v to missing if it is zero.
func fill[T comparable](v *T, missing T) {
	var zero T
	if *v == zero {
		*v = missing
	}
}

// bounded limits the body of a response to maxResponse.
func bounded(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	response, err := next(r)
	if response != nil && response.Body != nil {
		response.Body = http.MaxBytesReader(nil, response.Body, maxResponse)
	}
	return response, err
}

// Close closes idle connections.
func (m *Model) Close() { m.http.CloseIdleConnections() }

// Think implements think.Model: it sends the conversation to the API and returns the model's reply.
func (m *Model) Think(ctx context.Context, s think.Step) (think.Reply, error) {
	messages, err := conversation(s.Messages)
	if err != nil {
		return think.Reply{}, err
	}
	response, err := m.client.Messages.New(ctx, anthropic.MessageNewParams{
		Model: anthropic.Model(m.settings.Name), MaxTokens: m.settings.MaxTokens, System: m.system(s.Memoir),
		Messages: messages, Tools: m.tools,
	})
	if ctx.Err() != nil {
		return think.Reply{}, ctx.Err()
	}
	if err != nil {
		return think.Reply{}, failure(err)
	}
	return m.reply(response)
}

// system returns the system prompt with the user's memoir.
func (m *Model) system(memoir string) []anthropic.TextBlockParam {
	text := m.settings.System
	if strings.TrimSpace(memoir) != "" {
		text = strings.TrimSpace(text + "\n\nWhat you know of the user from earlier sessions:\n" + memoir)
	}
	if text == "" {
		return nil
	}
	return []anthropic.TextBlockParam{{Text: text}}
}
