package platform_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "github.com/turntable-streams/turntable/internal/testing/rapidseed"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform"
	"github.com/turntable-streams/turntable/topics"
)

// serve returns the address of a server that answers with the body that the door reads.
func serve(t *testing.T, c platform.DoorConfig) string {
	t.Helper()
	door := platform.NewDoor(c)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, ok := door.Read(w, r); ok {
			_, _ = w.Write(body)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func send(t *testing.T, method, url, media, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Content-Type", media)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(r)
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(text)
}

func TestReadRefusesOtherMethodsTypesAndSizes(t *testing.T) {
	url := serve(t, platform.DoorConfig{Limit: 8})
	for _, c := range []struct {
		method, media, body string
		want                int
	}{
		{"POST", "application/json", "12345678", 200},
		{"POST", "application/json; charset=utf-8", "{}", 200},
		{"GET", "application/json", "", 405},
		{"PUT", "application/json", "{}", 405},
		{"POST", "text/plain", "{}", 415},
		{"POST", "", "{}", 415},
		{"POST", "application/json", "123456789", 413},
	} {
		status, text := send(t, c.method, url, c.media, c.body)
		require.Equal(t, c.want, status, c)
		if status == 200 {
			require.Equal(t, c.body, text)
		}
	}
}

func TestBodyOfUnknownLengthIsBounded(t *testing.T) {
	url := serve(t, platform.DoorConfig{Limit: 8})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, io.MultiReader(strings.NewReader("123456789")))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultTransport.RoundTrip(r)
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, http.StatusRequestEntityTooLarge, response.StatusCode)
}

// partial opens a request whose body does not arrive, and returns its response when there is one.
func partial(t *testing.T, url string) func() int {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	_, err = fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 8\r\n\r\n1234")
	require.NoError(t, err)
	return func() int {
		response, err := http.ReadResponse(bufio.NewReader(c), nil)
		require.NoError(t, err)
		return response.StatusCode
	}
}

func TestSlowBodyIsGivenUp(t *testing.T) {
	status := partial(t, serve(t, platform.DoorConfig{Limits: auth.Limits{BodyIdle: 10 * time.Millisecond}}))
	require.Equal(t, http.StatusRequestTimeout, status())
}

// The sender of a body is known only when the body has arrived, so no number of slow ones may keep others out: neither from the
// address of the others, as behind a proxy, nor from many addresses.
func TestSlowBodiesKeepNoOneOut(t *testing.T) {
	url := serve(t, platform.DoorConfig{Limits: auth.Limits{BodyIdle: time.Minute}}) // longer than it takes to send the others
	first := partial(t, url)
	for range 299 {
		partial(t, url)
	}
	for range 50 {
		status, _ := send(t, "POST", url, "application/json", "{}")
		require.Equal(t, 200, status)
	}
	require.Equal(t, http.StatusServiceUnavailable, first(), "the oldest has given way")

	door := platform.NewDoor(platform.DoorConfig{})
	var wg sync.WaitGroup
	for i := range 1100 { // more than are read at a time
		slow := &slowBody{begun: make(chan struct{}), end: make(chan struct{})}
		wg.Go(func() {
			r := httptest.NewRequest(http.MethodPost, "/", slow)
			r.Header.Set("Content-Type", "application/json")
			r.RemoteAddr = fmt.Sprintf("192.0.2.%d:1", i%100)
			door.Read(&interrupted{httptest.NewRecorder(), slow}, r)
		})
		<-slow.begun
		defer slow.interrupt()
	}
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("{}"))
	r.Header.Set("Content-Type", "application/json")
	_, ok := door.Read(httptest.NewRecorder(), r)
	require.True(t, ok)
	t.Cleanup(wg.Wait)
}

// slowBody is a body of which nothing arrives before a deadline.
type slowBody struct {
	begun, end  chan struct{}
	begin, stop sync.Once
}

func (s *slowBody) Read([]byte) (int, error) {
	s.begin.Do(func() { close(s.begun) })
	<-s.end
	return 0, os.ErrDeadlineExceeded
}

func (s *slowBody) interrupt() { s.stop.Do(func() { close(s.end) }) }

// interrupted passes the deadline of a connection to a body.
type interrupted struct {
	http.ResponseWriter
	body *slowBody
}

func (i *interrupted) SetReadDeadline(at time.Time) error {
	if at.Before(time.Now()) {
		i.body.interrupt()
	}
	return nil
}

func TestFailedSignaturesAreLimitedAndKeepNoOneOut(t *testing.T) {
	door := platform.NewDoor(platform.DoorConfig{})
	answers := map[int]int{}
	for range 1000 {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("{}"))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		_, ok := door.Read(w, r)
		require.True(t, ok, "the signature may be valid")
		door.Unauthorized(w, r)
		answers[w.Code]++
		if w.Code == http.StatusTooManyRequests {
			require.NotEmpty(t, w.Header().Get("Retry-After"))
		}
	}
	require.Len(t, answers, 2)
	require.Less(t, answers[http.StatusUnauthorized], 60)
	require.Greater(t, answers[http.StatusTooManyRequests], 900)
}

func in(recipient, event string) adapter.Inbound {
	return adapter.Inbound{Event: event, Origin: topics.Origin{Channel: "c", Account: "a", Recipient: recipient}}
}

func TestEventsOfOneConversationArePassedOneAfterTheOther(t *testing.T) {
	door := platform.NewDoor(platform.DoorConfig{})
	started, proceed := make(chan string), make(chan struct{})
	receiver := adapter.ReceiverFunc(func(_ context.Context, in adapter.Inbound) error {
		started <- in.Event
		<-proceed
		return nil
	})
	var wg sync.WaitGroup
	submit := func(recipient, event string) {
		wg.Go(func() { _ = door.Submit(t.Context(), receiver, in(recipient, event)) })
	}
	submit("room", "1")
	require.Equal(t, "1", <-started)
	submit("room", "2")
	submit("other", "3")
	require.Equal(t, "3", <-started, "another conversation does not wait")
	proceed <- struct{}{}
	proceed <- struct{}{} // 1 and 3 end, so 2 starts
	require.Equal(t, "2", <-started)
	proceed <- struct{}{}
	wg.Wait()
}

func TestOnlyOneEventOfAConversationIsInProgress(t *testing.T) {
	const events = 64
	door := platform.NewDoor(platform.DoorConfig{PerKey: events})
	var inProgress, most atomic.Int32
	receiver := adapter.ReceiverFunc(func(context.Context, adapter.Inbound) error {
		most.Store(max(most.Load(), inProgress.Add(1)))
		for range 100 {
			runtime.Gosched() // others of the conversation would get in
		}
		inProgress.Add(-1)
		return nil
	})
	var wg sync.WaitGroup
	for range events {
		wg.Go(func() {
			if err := door.Submit(t.Context(), receiver, in("room", "x")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 1, most.Load())
}

func TestAnEventThatGivesUpDoesNotStopTheNextOnes(t *testing.T) {
	door := platform.NewDoor(platform.DoorConfig{PerKey: 2})
	started, proceed := make(chan struct{}), make(chan struct{})
	blocking := adapter.ReceiverFunc(func(context.Context, adapter.Inbound) error {
		started <- struct{}{}
		<-proceed
		return nil
	})
	var wg sync.WaitGroup
	wg.Go(func() { _ = door.Submit(t.Context(), blocking, in("room", "1")) })
	<-started
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, door.Submit(ctx, blocking, in("room", "2")), context.Canceled)
	close(proceed)
	wg.Wait()
	passed := false
	require.NoError(t, door.Submit(t.Context(), adapter.ReceiverFunc(func(context.Context, adapter.Inbound) error {
		passed = true
		return nil
	}), in("room", "3")))
	require.True(t, passed)
}

func TestABusyConversationDoesNotStarveOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		door := platform.NewDoor(platform.DoorConfig{Events: 3, PerKey: 2})
		proceed := make(chan struct{})
		blocking := adapter.ReceiverFunc(func(context.Context, adapter.Inbound) error {
			<-proceed
			return nil
		})
		quick := adapter.ReceiverFunc(func(context.Context, adapter.Inbound) error { return nil })
		for range 2 {
			go func() { _ = door.Submit(t.Context(), blocking, in("room", "1")) }()
		}
		synctest.Wait() // one is with the receiver, the other one waits for it
		require.ErrorIs(t, door.Submit(t.Context(), quick, in("room", "x")), platform.ErrBusy)
		require.NoError(t, door.Submit(t.Context(), quick, in("other", "2")))
		close(proceed)
	})
}

func TestNamesAreOneShortPrintableLine(t *testing.T) {
	require.Equal(t, "Ann B", platform.DisplayName(" Ann\r\n\tB\u202e\x00"))
	rapid.Check(t, func(t *rapid.T) {
		name := platform.DisplayName(rapid.String().Draw(t, "name"))
		require.True(t, utf8.ValidString(name))
		require.LessOrEqual(t, len(name), 256)
		require.Equal(t, name, platform.DisplayName(name))
	})
	require.Len(t, platform.DisplayName(strings.Repeat("é", 300)), 256)
}
