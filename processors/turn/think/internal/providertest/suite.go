package providertest

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/turn/think"
)

// Model is what every adapter implements.
type Model interface {
	think.ToolUser
	think.Streamer
	Close()
}

// Provider is what the suite needs to know of a provider.
type Provider struct {
	Name string
	New  func(s think.Settings) (Model, error)
	// Text is a whole response with these pieces of text.
	Text func(pieces ...string) Answer
	// Begun is the beginning of such a response, without its end.
	Begun func(pieces ...string) Answer
	// Error is an error response. Its message quotes the request.
	Error func(status int, headers ...string) Answer
	// After asks to wait for 7 seconds.
	After func() Answer
	// Overloaded is a response that begins and then reports that the provider is overloaded.
	Overloaded func() Answer
	// Idempotent reports that requests have an idempotency key.
	Idempotent bool
}

// NewModel returns a model of the API that the test closes.
func (p Provider) NewModel(t *testing.T, a *API, s think.Settings) Model {
	t.Helper()
	s.BaseURL = a.URL
	if s.Key == "" {
		s.Key = Key
	}
	if s.Model == "" {
		s.Model = "some-model"
	}
	m, err := p.New(s)
	require.NoError(t, err)
	t.Cleanup(m.Close)
	return m
}

// ask calls a model of an API that gives these answers.
func (p Provider) ask(t *testing.T, s think.Settings, answers ...Answer) (think.Reply, *API, error) {
	t.Helper()
	a := Start(t, answers...)
	reply, err := p.NewModel(t, a, s).Think(t.Context(), Question())
	if err != nil {
		RequireQuotesNothing(t, err)
	}
	return reply, a, err
}

// RequireQuotesNothing fails the test if an error quotes the conversation, the key or an address.
func RequireQuotesNothing(t *testing.T, err error) {
	t.Helper()
	for e := err; e != nil; e = errors.Unwrap(e) {
		for _, secret := range []string{Secret, "berth", Key, "127.0.0.1", "some-model"} {
			require.NotContains(t, e.Error(), secret)
		}
	}
}

// Run runs the tests that every adapter has to pass.
func (p Provider) Run(t *testing.T) {
	t.Run("TransientErrorsAreUnavailable", p.transientErrorsAreUnavailable)
	t.Run("RedirectIsNotFollowed", p.redirectIsNotFollowed)
	t.Run("RateLimitSaysHowLongToWait", p.rateLimitSaysHowLongToWait)
	t.Run("OverloadInAStreamIsUnavailable", p.overloadInAStreamIsUnavailable)
	t.Run("PermanentErrorsAreNotUnavailable", p.permanentErrorsAreNotUnavailable)
	t.Run("BrokenConnectionIsUnavailable", p.brokenConnectionIsUnavailable)
	t.Run("SilentAPITimesOut", p.silentAPITimesOut)
	t.Run("DeadlineEndsTheRequest", p.deadlineEndsTheRequest)
	t.Run("CallerCanStopAStream", p.callerCanStopAStream)
	t.Run("PiecesAreYieldedAsTheyArrive", p.piecesAreYieldedAsTheyArrive)
	t.Run("IdempotencyKeyIsThatOfTheStep", p.idempotencyKeyIsThatOfTheStep)
	t.Run("InvalidSettingsAreRejected", p.invalidSettingsAreRejected)
	t.Run("EmptyConversationIsNotSent", p.emptyConversationIsNotSent)
	t.Run("EphemeralPromptIsInTheRequestOfItsStepOnly", p.ephemeralPromptIsInTheRequestOfItsStepOnly)
	t.Run("ToolsCanBeAdded", p.toolsCanBeAdded)
}

// toolsCanBeAdded requires that it does not matter when a model is given its tools.
func (p Provider) toolsCanBeAdded(t *testing.T) {
	other := think.Tool{Name: "other", InputSchema: []byte(`{"type":"object"}`)}
	_, whole, err := p.ask(t, think.Settings{Tools: []think.Tool{Tool(), other}}, p.Text("N4."))
	require.NoError(t, err)

	a := Start(t, p.Text("N4."), p.Text("N4."))
	first := p.NewModel(t, a, think.Settings{Tools: []think.Tool{Tool()}})
	both, err := first.WithTools(other)
	require.NoError(t, err)
	t.Cleanup(both.(Model).Close)
	_, err = both.Think(t.Context(), Question())
	require.NoError(t, err)
	require.Equal(t, whole.Requests()[0].Body, a.Requests()[0].Body)
	_, err = first.Think(t.Context(), Question())
	require.NoError(t, err)
	require.NotContains(t, a.Requests()[1].Body, "other", "the first model is as it was")

	_, err = first.WithTools(think.Tool{})
	require.ErrorIs(t, err, think.ErrSettings)
}

// The worker retries what is Unavailable; neither the adapter nor its SDK does.
func (p Provider) transientErrorsAreUnavailable(t *testing.T) {
	for _, status := range []int{408, 409, 429, 500, 503, 529} {
		t.Run(strconv.Itoa(status), func(t *testing.T) {
			_, a, err := p.ask(t, think.Settings{}, p.Error(status, "retry-after-ms", "1"), p.Text("N4."))
			var u *think.Unavailable
			require.ErrorAs(t, err, &u)
			require.Equal(t, status == 429, u.RateLimit)
			require.Equal(t, time.Millisecond, u.RetryAfter())
			var failed *think.ProviderError
			require.ErrorAs(t, err, &failed)
			require.Equal(t, status, failed.Status)
			require.True(t, strings.HasPrefix(err.Error(), p.Name+": status "+strconv.Itoa(status)), err.Error())
			require.Len(t, a.Requests(), 1)
		})
	}
}

// A redirect would send the key and the conversation to another address.
func (p Provider) redirectIsNotFollowed(t *testing.T) {
	for _, status := range []int{302, 307} {
		other := Start(t, p.Text("N4."))
		_, a, err := p.ask(t, think.Settings{}, Answer{Status: status, Headers: map[string]string{"Location": other.URL}})
		var failed *think.ProviderError
		require.ErrorAs(t, err, &failed)
		require.Equal(t, status, failed.Status)
		require.Empty(t, other.Requests())
		require.Len(t, a.Requests(), 1)
	}
}

func (p Provider) rateLimitSaysHowLongToWait(t *testing.T) {
	for name, answer := range map[string]Answer{
		"as documented": p.After(),
		"in seconds":    p.Error(429, "retry-after", "7"),
		"in ms":         p.Error(429, "retry-after-ms", "7000"),
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := p.ask(t, think.Settings{}, answer)
			var u *think.Unavailable
			require.ErrorAs(t, err, &u)
			require.True(t, u.RateLimit)
			require.Equal(t, 7*time.Second, u.After)
		})
	}
	_, _, err := p.ask(t, think.Settings{},
		p.Error(503, "retry-after", time.Now().Add(time.Minute).UTC().Format(http.TimeFormat)))
	var u *think.Unavailable
	require.ErrorAs(t, err, &u)
	require.False(t, u.RateLimit)
	require.InDelta(t, time.Minute, u.After, float64(10*time.Second))
}

func (p Provider) overloadInAStreamIsUnavailable(t *testing.T) {
	_, a, err := p.ask(t, think.Settings{}, p.Overloaded())
	var u *think.Unavailable
	require.ErrorAs(t, err, &u)
	require.Len(t, a.Requests(), 1)
}

func (p Provider) permanentErrorsAreNotUnavailable(t *testing.T) {
	for name, answer := range map[string]Answer{
		"key":        p.Error(401),
		"body":       p.Error(400),
		"no JSON":    {Status: 403, Body: Secret},
		"half JSON":  Events(`{"Which berth?`),
		"other JSON": Events(`{"hello":"Which berth?"}`),
		"empty":      {Status: 200},
		"page":       {Status: 200, Body: "<html>Which berth?", Headers: map[string]string{"Content-Type": "text/html"}},
		"ends early": p.Begun("N4."),
	} {
		t.Run(name, func(t *testing.T) {
			_, a, err := p.ask(t, think.Settings{}, answer)
			require.Error(t, err)
			var u *think.Unavailable
			require.False(t, errors.As(err, &u), err.Error())
			require.Len(t, a.Requests(), 1)
		})
	}
}

func (p Provider) brokenConnectionIsUnavailable(t *testing.T) {
	for name, answer := range map[string]Answer{"before the response": {Break: true}, "in it": {
		Status: 200, Body: p.Begun("N4.").Body, Headers: p.Begun().Headers, Break: true,
	}} {
		t.Run(name, func(t *testing.T) {
			_, _, err := p.ask(t, think.Settings{}, answer)
			var u *think.Unavailable
			require.ErrorAs(t, err, &u)
			require.ErrorIs(t, err, think.ErrUnreachable)
		})
	}
	a := Start(t, Answer{Status: 200})
	m := p.NewModel(t, a, think.Settings{})
	a.Close()
	_, err := m.Think(t.Context(), Question())
	require.ErrorIs(t, err, think.ErrUnreachable)
	RequireQuotesNothing(t, err)
}

func (p Provider) silentAPITimesOut(t *testing.T) {
	for name, answer := range map[string]Answer{"at once": {Hang: true}, "later": {
		Status: 200, Body: p.Begun("N4.").Body, Headers: p.Begun().Headers, Hang: true,
	}} {
		t.Run(name, func(t *testing.T) {
			_, a, err := p.ask(t, think.Settings{Silence: 100 * time.Millisecond}, answer)
			require.ErrorIs(t, err, think.ErrTimeout)
			require.Len(t, a.Requests(), 1)
		})
	}
}

func (p Provider) deadlineEndsTheRequest(t *testing.T) {
	a := Start(t, Answer{Hang: true})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := p.NewModel(t, a, think.Settings{}).Think(ctx, Question())
	require.ErrorIs(t, err, context.DeadlineExceeded)
	ctx, stop := context.WithCancel(t.Context())
	asked := make(chan error, 1)
	m := p.NewModel(t, a, think.Settings{})
	go func() {
		_, err := m.Think(ctx, Question())
		asked <- err
	}()
	require.Eventually(t, func() bool { return len(a.Requests()) == 2 }, time.Minute, time.Millisecond)
	stop()
	require.ErrorIs(t, <-asked, context.Canceled)
}

func (p Provider) callerCanStopAStream(t *testing.T) {
	begun := p.Begun("N4.")
	begun.Hang = true
	a := Start(t, begun)
	for d, err := range p.NewModel(t, a, think.Settings{}).Stream(t.Context(), Question()) {
		require.NoError(t, err)
		if d.Text != "" {
			break
		}
	}
}

func (p Provider) piecesAreYieldedAsTheyArrive(t *testing.T) {
	a := Start(t, p.Text("Berth ", "N", "4."))
	var pieces []string
	for d, err := range p.NewModel(t, a, think.Settings{}).Stream(t.Context(), Question()) {
		require.NoError(t, err)
		if d.Text != "" {
			pieces = append(pieces, d.Text)
		}
	}
	require.Equal(t, []string{"Berth ", "N", "4."}, pieces)
}

func (p Provider) idempotencyKeyIsThatOfTheStep(t *testing.T) {
	a := Start(t, p.Error(500, "retry-after-ms", "1"), p.Text("N4."))
	m := p.NewModel(t, a, think.Settings{})
	other := Question()
	other.Key = "t/0/enriched/1"
	for i, s := range []think.Step{Question(), Question(), Question(), other} {
		_, err := m.Think(t.Context(), s)
		require.Equal(t, i == 0, err != nil)
	}
	var keys []string
	for _, r := range a.Requests() {
		keys = append(keys, r.Header.Get("Idempotency-Key"))
	}
	if !p.Idempotent {
		require.Equal(t, []string{"", "", "", ""}, keys)
		return
	}
	require.Len(t, keys[0], 40)
	require.Equal(t, []string{keys[0], keys[0], keys[0]}, keys[:3])
	require.NotEqual(t, keys[0], keys[3])
	bodies := a.Requests()
	require.Equal(t, bodies[0].Body, bodies[1].Body, "providers reject a key with another body")
}

func (p Provider) invalidSettingsAreRejected(t *testing.T) {
	valid := think.Settings{Key: Key, Model: "m"}
	for name, change := range map[string]func(*think.Settings){
		"no key":   func(s *think.Settings) { s.Key = " " },
		"no model": func(s *think.Settings) { s.Model = "" },
		"tokens":   func(s *think.Settings) { s.MaxTokens = -1 },
		"silence":  func(s *think.Settings) { s.Silence = -1 },
		"schema":   func(s *think.Settings) { s.Tools = []think.Tool{{Name: "x", InputSchema: []byte("[]")}} },
		"tool":     func(s *think.Settings) { s.Tools = []think.Tool{{InputSchema: []byte("{}")}} },
	} {
		t.Run(name, func(t *testing.T) {
			s := valid
			change(&s)
			_, err := p.New(s)
			require.ErrorIs(t, err, think.ErrSettings)
			require.NotContains(t, err.Error(), Key)
		})
	}
}

func (p Provider) emptyConversationIsNotSent(t *testing.T) {
	a := Start(t, p.Text("N4."))
	_, err := p.NewModel(t, a, think.Settings{}).Think(t.Context(), Step(Message("user", `" "`)))
	require.ErrorIs(t, err, think.ErrConversation)
	require.Empty(t, a.Requests())
}

// The ephemeral prompt is the last section of the system prompt, and the next request does not have it.
func (p Provider) ephemeralPromptIsInTheRequestOfItsStepOnly(t *testing.T) {
	const prompt = "Present the findings."
	a := Start(t, p.Text("N4."), p.Text("N4."), p.Text("N4."))
	m := p.NewModel(t, a, think.Settings{System: "Be brief."})
	step := Question()
	step.Memoir = "Skipper."
	for _, ephemeral := range []string{prompt, " \n", ""} {
		step.EphemeralPrompt = ephemeral
		_, err := m.Think(t.Context(), step)
		require.NoError(t, err)
	}
	with, blank, without := a.Requests()[0].Body, a.Requests()[1].Body, a.Requests()[2].Body
	require.Equal(t, 1, strings.Count(with, prompt))
	require.Less(t, strings.Index(with, "Be brief."), strings.Index(with, "Skipper."))
	require.Less(t, strings.Index(with, "Skipper."), strings.Index(with, prompt))
	require.NotContains(t, without, prompt)
	require.Equal(t, without, blank, "a blank prompt is no section")
}
