package openai

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/net/http/httpguts"

	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/turn/think/internal/provider"
	"github.com/turntable-streams/turntable/topics"
)

// defaultURL is the address of OpenAI's API.
const defaultURL = "https://api.openai.com/v1/"

// request is the body of https://platform.openai.com/docs/api-reference/chat/create.
type request struct {
	Messages       []message      `json:"messages"`
	Model          string         `json:"model"`
	MaxTokens      int64          `json:"max_completion_tokens,omitzero"`
	PromptCacheKey string         `json:"prompt_cache_key,omitzero"`
	StreamOptions  streamOptions  `json:"stream_options"`
	Tools          jsontext.Value `json:"tools,omitzero"`
	Stream         bool           `json:"stream"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

// message is a message of a request. Content is a text or a list of parts, nil for none.
type message struct {
	Content    any                       `json:"content,omitzero"`
	ToolCalls  []toolCall                `json:"tool_calls,omitempty"`
	ToolCallID string                    `json:"tool_call_id,omitzero"`
	Role       string                    `json:"role"`
	Extra      map[string]jsontext.Value `json:",embed"`
}

type toolCall struct {
	ID       string                    `json:"id"`
	Function function                  `json:"function"`
	Type     string                    `json:"type"`
	Extra    map[string]jsontext.Value `json:",embed"`
}

type function struct {
	Arguments string `json:"arguments"`
	Name      string `json:"name"`
}

// part is a text or an image of a message.
type part struct {
	Text     *string   `json:"text,omitzero"`
	ImageURL *imageURL `json:"image_url,omitzero"`
	Type     string    `json:"type"`
}

type imageURL struct {
	URL string `json:"url"`
}

// toolsOf returns the list of tools of a request. Their schemas are written as they are, in the order of their members.
func toolsOf(tools []think.Tool) jsontext.Value {
	if len(tools) == 0 {
		return nil
	}
	raw := []byte{'['}
	for i, t := range tools {
		if i > 0 {
			raw = append(raw, ',')
		}
		raw, _ = jsontext.AppendQuote(append(raw, `{"type":"function","function":{"name":`...), t.Name) // invalid UTF-8 is replaced
		if t.Description != "" {
			raw, _ = jsontext.AppendQuote(append(raw, `,"description":`...), t.Description)
		}
		raw = append(append(append(raw, `,"parameters":`...), t.InputSchema...), "}}"...)
	}
	return append(raw, ']')
}

// addressOf returns the URL of completions.
func addressOf(base string) (*url.URL, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, fmt.Errorf("%w: openai: BaseURL is not the URL of an API", think.ErrSettings) // it may contain a secret
	}
	if !strings.HasSuffix(u.Path, "/") {
		u.Path += "/"
	}
	return u.Parse("chat/completions")
}

// headersOf returns the headers of requests: those of the environment, and the key. A header that no request can have would make every
// request fail.
func headersOf(key string) (http.Header, error) {
	h := http.Header{"User-Agent": {"Turntable"}}
	for name, variable := range map[string]string{"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"} {
		if value := os.Getenv(variable); value != "" {
			h.Set(name, value)
		}
	}
	for line := range strings.Lines(os.Getenv("OPENAI_CUSTOM_HEADERS")) {
		if name, value, ok := strings.Cut(line, ":"); ok {
			h.Set(strings.TrimSpace(name), strings.TrimSpace(value))
		}
	}
	h.Set("Authorization", "Bearer "+key)
	h.Set("Accept", "application/json")
	h.Set("Content-Type", "application/json")
	for name, values := range h {
		if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(values[0]) {
			return nil, fmt.Errorf("%w: openai: Key, OPENAI_ORG_ID, OPENAI_PROJECT_ID or OPENAI_CUSTOM_HEADERS is no header", think.ErrSettings)
		}
	}
	return h, nil
}

// WithMember returns a change of New that sets a member of the JSON object that is the body of every request, for parameters that
// package think does not have, such as "reasoning_effort". It replaces a member of that name. It panics if the value cannot be encoded.
func WithMember(name string, value any) func(*http.Request) {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("openai: member %s cannot be encoded: %v", name, err))
	}
	return func(r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var members map[string]jsontext.Value
		if err != nil || json.Unmarshal(body, &members, lenient) != nil {
			return // another change has replaced the body
		}
		members[name] = raw
		body, _ = json.Marshal(members, lenient) // they were decoded, so they can be encoded
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
}

// lenient is how bodies are encoded: a conversation can have texts that are no valid UTF-8.
var lenient = json.JoinOptions(
	json.Deterministic(true), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true), jsontext.EscapeForJS(true))

// changed calls the functions of New. They may replace the body and the URL.
func (m *Model) changed(r *http.Request) error {
	host, body := r.URL.Host, r.Body
	for _, change := range m.change {
		change(r)
	}
	if r.URL.Host != host && r.Host == host {
		r.Host = "" // that of the URL
	}
	if r.Body == body || r.Body == nil {
		return nil
	}
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	r.ContentLength = int64(len(raw))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(raw)), nil }
	r.Body, err = r.GetBody()
	return err
}

// post begins a completion. The caller closes the body of the response, whose status is below 400.
func (m *Model) post(ctx context.Context, body request, key string) (*http.Response, error) {
	raw, err := json.Marshal(body, lenient)
	if err != nil {
		return nil, think.ErrConversation // a repeat has the same error
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, m.address.String(), bytes.NewReader(raw))
	if err != nil {
		return nil, think.ErrConversation
	}
	r.Header = m.headers.Clone()
	r.Header.Set("Idempotency-Key", key)
	if err := m.changed(r); err != nil {
		return nil, think.ErrConversation
	}
	response, err := m.provider.HTTP.Do(r)
	if err != nil || response.StatusCode < http.StatusBadRequest {
		return response, err
	}
	defer func() { _ = response.Body.Close() }() // the body is read
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	return nil, &provider.Failure{Response: failureOf(response.StatusCode, answer)}
}

// noQuota is the code of a 429 that does not end by itself: the account has no credit.
const noQuota = "insufficient_quota"

// failureOf reads the body of an error response.
func failureOf(status int, body topics.Raw) provider.Response {
	failure := provider.Get(body, "error")
	text := func(name string) string {
		switch v := provider.Get(failure, name); jsontext.Value(v).Kind() {
		case '"', '0':
			return topics.Text(v)
		}
		return ""
	}
	code, kind := text("code"), text("type")
	r := provider.Response{Status: status, Type: code, Final: code == noQuota || kind == noQuota}
	if code == "" { // it is more precise than the type
		r.Type = kind
	}
	return r
}
