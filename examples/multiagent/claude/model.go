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

// ErrSettings is wrapped by everything that New refuses.
var ErrSettings = errors.New("claude: bad settings")

// Settings are what New needs. Fields that are zero have the defaults named here.
type Settings struct {
	// Key is the API key, a secret. Required.
	Key string
	// Name is the model's; DefaultName.
	Name string
	// System is the system prompt; none.
	System string
	// Tools are what the model may call; none.
	Tools []Tool
	// MaxTokens bounds an answer; 4096.
	MaxTokens int64
	// Prices are dollars for a million tokens; where they are nil, costs are not known.
	Prices *Prices
	// Attempts is how often a step is asked, the first time included; 5.
	Attempts int
	// Timeout is how long an attempt may take; 2 minutes.
	Timeout time.Duration
}

// Tool is something that the model may call.
type Tool struct {
	Name        string
	Description string
	InputSchema topics.Raw // a JSON schema of an object
}

// DefaultName is the model that is asked where Settings name none.
const DefaultName = string(anthropic.ModelClaudeHaiku4_5_20251001)

const (
	defaultMaxTokens = 4096
	defaultAttempts  = 5
	defaultTimeout   = 2 * time.Minute
	// maxAnswer bounds what is read of an answer, in bytes.
	maxAnswer = 16 << 20
)

// Model asks the API. It is safe for concurrent use; Close ends idle connections.
type Model struct {
	settings Settings
	client   anthropic.Client
	http     *http.Client
	tools    []anthropic.ToolUnionParam
}

// New makes a model. It contacts nobody. The API's address is ANTHROPIC_BASE_URL, where that is set; the SDK's options
// come after it and win.
func New(s Settings, opts ...option.RequestOption) (*Model, error) {
	if strings.TrimSpace(s.Key) == "" {
		return nil, fmt.Errorf("%w: no key", ErrSettings)
	}
	if s.MaxTokens < 0 || s.Attempts < 0 || s.Timeout < 0 {
		return nil, fmt.Errorf("%w: a limit below zero", ErrSettings)
	}
	fill(&s.Name, DefaultName)
	fill(&s.MaxTokens, defaultMaxTokens)
	fill(&s.Attempts, defaultAttempts)
	fill(&s.Timeout, defaultTimeout)
	m := &Model{settings: s, http: &http.Client{
		Transport: http.DefaultTransport.(*http.Transport).Clone(),
		// The key would go along.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	for _, t := range s.Tools {
		schema := jsontext.Value(t.InputSchema)
		if strings.TrimSpace(t.Name) == "" || schema.Kind() != '{' || !schema.IsValid() {
			return nil, fmt.Errorf("%w: tool %q: no name, or its schema is no object", ErrSettings, t.Name)
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

func fill[T comparable](v *T, missing T) {
	var zero T
	if *v == zero {
		*v = missing
	}
}

// bounded reads no more of an answer than fits.
func bounded(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	response, err := next(r)
	if response != nil && response.Body != nil {
		response.Body = http.MaxBytesReader(nil, response.Body, maxAnswer)
	}
	return response, err
}

// Close ends idle connections.
func (m *Model) Close() { m.http.CloseIdleConnections() }

// Think implements think.Model.
func (m *Model) Think(ctx context.Context, s think.Step) (think.Reply, error) {
	messages, err := conversation(s.Messages)
	if err != nil {
		return think.Reply{}, err
	}
	said, err := m.client.Messages.New(ctx, anthropic.MessageNewParams{
		Model: anthropic.Model(m.settings.Name), MaxTokens: m.settings.MaxTokens, System: m.system(s.Memoir),
		Messages: messages, Tools: m.tools,
	})
	if ctx.Err() != nil {
		return think.Reply{}, ctx.Err()
	}
	if err != nil {
		return think.Reply{}, failure(err)
	}
	return m.reply(said)
}

// system is the system prompt, with what is known of the user.
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
