package invoke

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/fold/folder"
)

// A recording holds one attempt. A reader of an older attempt gets Superseded and does not wait indefinitely.
func TestNewerAttemptsAreBuffered(t *testing.T) {
	first, second := scripted(t, hello).events, scripted(t, `{"type":"message","data":{"text":"again"}}`).events
	agent := AgentFunc(func(context.Context, Request) (Stream, error) {
		return &attempts{first: first[:3], second: second}, nil
	})
	b := newBuffered(t, agent)
	s := newSite(t, b)
	require.Equal(t, "again", said(t, s.invoke(question).body))
	b.runs.Wait()
	a := s.invoke(question, "Accept", "text/event-stream", HeaderLastEvent, turnID+".1.2")
	require.Contains(t, a.body, `"reason": "superseded", "resume": "`+turnID+`.2.0"`)
	a = s.invoke(question, "Accept", "text/event-stream", HeaderLastEvent, turnID+".2.0")
	require.Contains(t, a.body, "id: "+turnID+".2.1\n")
	require.Contains(t, a.body, `"again"`)
	require.NotContains(t, a.body, "Hel")
	for _, gone := range []string{".0.1", ".3.1"} {
		require.Equal(t, http.StatusGone, s.invoke(question, HeaderLastEvent, turnID+gone).status)
	}
	size := 0
	for _, e := range second {
		size += len(e.Data()) + eventCost
	}
	require.Equal(t, size, b.bytes, "what was dropped is not counted")
}

// endless is a stream of newer attempts without events.
type endless struct{}

func (endless) Next(context.Context) (Item, error) { return Item{}, &Superseded{} }
func (endless) End() folder.End                    { return folder.End{} }
func (endless) Close() error                       { return nil }

func TestEndlessAttemptsStopWhenTheClientDisconnects(t *testing.T) {
	d := must(New(AgentFunc(func(context.Context, Request) (Stream, error) { return endless{}, nil }), Config{}))
	s := serve(t, d)
	ctx, leave := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer leave()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.http.URL+"/invoke", strings.NewReader(`{}`))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	_, err = s.http.Client().Do(r)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Eventually(t, func() bool { return d.entrance.Len() == 0 }, time.Minute, time.Millisecond)
}

// throwing is a stream whose End panics.
type throwing struct{ live }

func (*throwing) Next(context.Context) (Item, error) { return Item{}, io.EOF }
func (*throwing) End() folder.End                    { panic("secret") }

func TestPanicOfABufferedAgentFailsTheTurnOnly(t *testing.T) {
	invoking := newBuffered(t, AgentFunc(func(context.Context, Request) (Stream, error) { panic("secret") }))
	require.Equal(t, http.StatusInternalServerError, newSite(t, invoking).invoke(`{}`).status)
	require.Empty(t, invoking.order, "its place is free again")
	ending := newBuffered(t, AgentFunc(func(context.Context, Request) (Stream, error) {
		return &throwing{live{closed: make(chan struct{}, 1)}}, nil
	}))
	a := newSite(t, ending).invoke(`{}`)
	require.Equal(t, http.StatusInternalServerError, a.status)
	require.NotContains(t, a.body, "secret")
}
