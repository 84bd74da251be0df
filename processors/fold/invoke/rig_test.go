package invoke

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/topics"
)

// script is an agent that plays events.
type script struct {
	events     []folder.Event
	end        folder.End
	err        error // returned after the events, instead of io.EOF
	refuses    error // returned by Invoke
	capability Capability
	requests   []Request
	closed     int
}

func (s *script) Invoke(_ context.Context, r Request) (Stream, error) {
	s.requests = append(s.requests, r)
	if s.refuses != nil {
		return nil, s.refuses
	}
	return &played{script: s}, nil
}

type played struct {
	script *script
	at     int
}

func (p *played) Next(ctx context.Context) (Item, error) {
	switch {
	case ctx.Err() != nil:
		return Item{}, ctx.Err()
	case p.at < len(p.script.events):
		p.at++
		return Item{Event: p.script.events[p.at-1]}, nil
	case p.script.err != nil:
		return Item{}, p.script.err
	}
	return Item{}, io.EOF
}

func (p *played) End() folder.End { return p.script.end }

func (p *played) Close() error { p.script.closed++; return nil }

// scripted returns an agent that plays events given as JSON, one per line.
func scripted(t testing.TB, lines string) *script {
	t.Helper()
	s := &script{}
	for line := range strings.Lines(lines) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		e, err := folder.DecodeEvent(topics.Raw(strings.TrimSpace(line)))
		require.NoError(t, err)
		s.events = append(s.events, e)
	}
	return s
}

const hello = `
{"type":"message_start","data":{"type":"message_start","id":"msg-0"}}
{"type":"message_delta","data":{"type":"message_delta","id":"msg-0","delta":"Hel"}}
{"type":"message_delta","data":{"type":"message_delta","id":"msg-0","delta":"lo, wörld"}}
{"type":"message_end","data":{"type":"message_end","id":"msg-0"}}
{"type":"done","data":{"type":"done"}}`

// fixed is a random source that returns the same bytes for every request.
type fixed struct{}

func (fixed) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 0xa0 + byte(i)
	}
	return len(p), nil
}

const (
	traceID = "a0a1a2a3a4a5a6a7a8a9aaabacadaeaf"
	spanID  = "b0b1b2b3b4b5b6b7"
)

// site is a door behind a real HTTP server, at the root and mounted.
type site struct {
	t    testing.TB
	http *httptest.Server
}

func newSite(t testing.TB, a Agent, change ...func(*Config)) *site {
	t.Helper()
	c := Config{Random: fixed{}}
	if s, ok := a.(*script); ok {
		c.Capability = s.capability
	}
	for _, f := range change {
		f(&c)
	}
	door, err := New(a, c)
	require.NoError(t, err)
	return serve(t, door)
}

func serve(t testing.TB, door http.Handler) *site {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("/invoke", door)
	mux.Handle("/agent/v0/invoke", door)
	s := &site{t: t, http: httptest.NewServer(mux)}
	t.Cleanup(s.http.Close)
	return s
}

// got is an answer.
type got struct {
	status int
	body   string
	header http.Header
}

func (s *site) send(method, path, body string, headers ...string) *http.Response {
	s.t.Helper()
	return s.sendUntil(s.t.Context(), method, path, body, headers...)
}

// sendUntil is send with a context that ends the request and its response.
func (s *site) sendUntil(ctx context.Context, method, path, body string, headers ...string) *http.Response {
	s.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, s.http.URL+path, strings.NewReader(body))
	require.NoError(s.t, err)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Content-Type" {
			r.Header.Del("Content-Type") // an empty one is none
		}
		if headers[i+1] != "" {
			r.Header.Add(headers[i], headers[i+1])
		}
	}
	resp, err := s.http.Client().Do(r)
	require.NoError(s.t, err)
	return resp
}

func (s *site) invoke(body string, headers ...string) got {
	s.t.Helper()
	return read(s.t, s.send(http.MethodPost, "/invoke", body, headers...))
}

func (s *site) mounted(body string, headers ...string) got {
	s.t.Helper()
	return read(s.t, s.send(http.MethodPost, "/agent/v0/invoke", body, headers...))
}

func read(t testing.TB, resp *http.Response) got {
	t.Helper()
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return got{resp.StatusCode, string(body), resp.Header}
}

// at is a value inside a JSON body, by names; nil for none.
func at(t testing.TB, body string, path ...string) topics.Raw {
	t.Helper()
	v := topics.Raw(body)
	require.True(t, jsontext.Value(v).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)), body)
	for _, name := range path {
		v = member(v, name)
	}
	return v
}

func textAt(t testing.TB, body string, path ...string) string {
	t.Helper()
	s, _ := text(at(t, body, path...))
	return s
}

// said is the content of a batch's first message.
func said(t testing.TB, body string) string {
	t.Helper()
	messages := elementsOf(at(t, body, "data", "outputs", "messages"))
	require.NotEmpty(t, messages, body)
	return textAt(t, string(messages[0]), "content")
}

// golden is a line of the corpus; its README says what the fields mean.
type golden struct {
	ID         string       `json:"id"`
	Events     topics.Raw   `json:"events"`
	StopReason topics.Raw   `json:"stop_reason"`
	Batch      topics.Raw   `json:"batch"`
	Trimmed    []topics.Raw `json:"trimmed"`
	Error      bool         `json:"error"`
}

// rawValues makes json.Unmarshal copy values into topics.Raw fields byte for byte.
var rawValues = json.WithUnmarshalers(json.UnmarshalFromFunc(func(d *jsontext.Decoder, to *topics.Raw) error {
	v, err := d.ReadValue()
	*to = bytes.Clone(v)
	return err
}))

func corpus(t testing.TB) []golden {
	t.Helper()
	file, err := os.ReadFile("../folder/testdata/turns.jsonl")
	require.NoError(t, err)
	var turns []golden
	for line := range bytes.Lines(file) {
		var g golden
		require.NoError(t, json.Unmarshal(line, &g, rawValues, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)))
		turns = append(turns, g)
	}
	turns = slices.DeleteFunc(turns, func(g golden) bool { return !g.playable() })
	require.GreaterOrEqual(t, len(turns), 40)
	return turns
}

// playable reports whether an agent can play the turn: all its events can be decoded. Elements that are not objects are left
// out, as by fold.
func (g golden) playable() bool {
	for _, raw := range elementsOf(g.Events) {
		if _, err := folder.DecodeEvent(raw); err != nil && kindOf(raw) == '{' {
			return false
		}
	}
	return kindOf(g.Events) == '[' && (!g.Error || len(elementsOf(g.Events)) > 0)
}

// script returns an agent that plays the turn, without elements that are not events.
func (g golden) script() *script {
	s := &script{end: folder.End{StopReason: g.StopReason}}
	for _, raw := range elementsOf(g.Events) {
		if e, err := folder.DecodeEvent(raw); err == nil {
			s.events = append(s.events, e)
		}
	}
	return s
}

// kind is an answer's status and media type.
func (g got) kind() string { return strconv.Itoa(g.status) + " " + g.header.Get("Content-Type") }

// attempts is a stream of two attempts at a turn.
type attempts struct {
	first, second []folder.Event
	switched      bool
	n             uint64
}

func (a *attempts) Next(context.Context) (Item, error) {
	switch {
	case len(a.first) > 0:
		e := a.first[0]
		a.first, a.n = a.first[1:], a.n+1
		return Item{ID: EventID{"t", 1, a.n}, Event: e}, nil
	case !a.switched:
		a.switched, a.n = true, 0
		return Item{}, &Superseded{By: EventID{Turn: "t", Attempt: 2}}
	case len(a.second) > 0:
		e := a.second[0]
		a.second, a.n = a.second[1:], a.n+1
		return Item{ID: EventID{"t", 2, a.n}, Event: e}, nil
	}
	return Item{}, io.EOF
}

func (*attempts) End() folder.End { return folder.End{} }
func (*attempts) Close() error    { return nil }
