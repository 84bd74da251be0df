package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/processors/delivery/sink"
	"github.com/turntable-streams/turntable/processors/peer"
)

func TestRequestHasTheFormThatPeersRead(t *testing.T) {
	for name, change := range map[string]func(*peerwire.Card){"plain": func(*peerwire.Card) {}, "idempotent": idempotent} {
		t.Run(name, func(t *testing.T) {
			p := newInstance(t, change)
			p.delegate = func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				req, refusal := peerwire.ReadRequest(body)
				require.Nil(t, refusal)
				require.Equal(t, []string{"POST", "Bearer " + token, "application/json", "application/json", "respond-async, wait=25", ""}, []string{
					r.Method, r.Header.Get("Authorization"), r.Header.Get("Content-Type"), r.Header.Get("Accept"), r.Header.Get("Prefer"),
					r.Header.Get("Idempotency-Key"),
				})
				require.Equal(t, "count the rows", req.Content)
				require.Equal(t, "hq-1", req.ParentInstanceID)
				if name == "plain" {
					require.LessOrEqual(t, req.Timeout, limit, "the time of the attempt")
					require.Greater(t, req.Timeout, limit/2)
				} else {
					require.Greater(t, req.Timeout, 9*limit, "the time of the task")
				}
				_, _ = w.Write(replyTo(req.TaskID))
			}
			require.False(t, exchange(t, p.sender(), attempt()).failed)
		})
	}
}

func TestWellFormedReplyIsASuccessWhateverItsStatus(t *testing.T) {
	for _, status := range []peerwire.Status{peerwire.StatusSuccess, peerwire.StatusError, peerwire.StatusRejected} {
		p := newInstance(t)
		reply := peerwire.Reply{TaskID: "t/9", PeerInstanceID: "", Status: status, Error: "e"}.Body()
		p.delegate = answer(200, string(reply))
		e := exchange(t, p.sender(), attempt())
		require.False(t, e.failed)
		require.JSONEq(t, string(reply), string(e.Reply))
		require.True(t, e.Answered && e.Reached)
	}
}

func TestStatusDecidesHowAnAttemptEnds(t *testing.T) {
	for code, want := range map[int]exchanged{
		400: {Answer: peerwire.Answer{Code: peerwire.CodePeerRefused}, Failure: sink.Failure{Final: true}},
		401: {Answer: peerwire.Answer{Code: peerwire.CodePeerRefused}, Failure: sink.Failure{Final: true}},
		403: {Answer: peerwire.Answer{Code: peerwire.CodePeerRefused}, Failure: sink.Failure{Final: true}},
		404: {Answer: peerwire.Answer{Code: peerwire.CodePeerRefused}, Failure: sink.Failure{Final: true}},
		409: {Answer: peerwire.Answer{Code: peerwire.CodePeerRefused}, Failure: sink.Failure{Final: true}},
		413: {Answer: peerwire.Answer{Code: peerwire.CodePeerRefused}, Failure: sink.Failure{Final: true}},
		429: {Answer: peerwire.Answer{Code: peerwire.CodePeerBusy}, Failure: sink.Failure{RetryAfter: 7 * time.Second}},
		500: {Answer: peerwire.Answer{Code: peerwire.CodePeerRefused, Reached: true}, Failure: sink.Failure{RetryAfter: 7 * time.Second}},
		502: {Answer: peerwire.Answer{Code: peerwire.CodePeerRefused, Reached: true}, Failure: sink.Failure{RetryAfter: 7 * time.Second}},
		503: {Answer: peerwire.Answer{Code: peerwire.CodePeerBusy}, Failure: sink.Failure{RetryAfter: 7 * time.Second}},
		504: {Answer: peerwire.Answer{Code: peerwire.CodePeerRefused, Reached: true}, Failure: sink.Failure{RetryAfter: 7 * time.Second}},
		301: {Answer: peerwire.Answer{Code: peerwire.CodePeerRefused, Reached: true}, Failure: sink.Failure{Final: true}},
		303: {Answer: peerwire.Answer{Code: peerwire.CodePeerRefused, Reached: true}, Failure: sink.Failure{Final: true}},
		307: {Answer: peerwire.Answer{Code: peerwire.CodePeerRefused, Reached: true}, Failure: sink.Failure{Final: true}},
	} {
		for body, detail := range map[string]string{
			`{"error":"Peer text of ` + token + `","code":"x"}`: "Peer text of [secret]",
			`{"error":7}`: "HTTP " + strconv.Itoa(code),
			`<html>`:      "HTTP " + strconv.Itoa(code),
			``:            "HTTP " + strconv.Itoa(code),
			`{"error":"` + strings.Repeat("x", maxError) + `"}`: "HTTP " + strconv.Itoa(code),
		} {
			p := newInstance(t)
			p.delegate = func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Retry-After", "7")
				answer(code, body)(w, r)
			}
			want.Detail, want.Answered, want.Status, want.failed = detail, true, code, true
			want.Reason = "status " + strconv.Itoa(code)
			require.Equal(t, want, exchange(t, p.sender(), attempt()), "%d", code)
		}
	}
}

func TestReplyThatIsNotWellFormedIsFinal(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
	}{
		"garbage":        {200, "<html>"},
		"empty":          {200, ""},
		"no content":     {204, ""},
		"list":           {200, "[]"},
		"other task":     {200, string(replyTo("t-10"))},
		"no instance":    {200, `{"taskId":"t/9","status":"success"}`},
		"unknown status": {200, `{"taskId":"t/9","peerInstanceId":"a","status":"paused"}`},
		"too large":      {200, `{"taskId":"t/9","peerInstanceId":"a","status":"success","result":"` + strings.Repeat("x", peerwire.MaxReply) + `"}`},
		"cut":            {200, string(replyTo("t/9")[:40])},
	} {
		t.Run(name, func(t *testing.T) {
			p := newInstance(t)
			p.delegate = answer(c.status, c.body)
			if c.status == 204 {
				p.delegate = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }
			}
			e := exchange(t, p.sender(), attempt())
			require.Equal(t, []any{peerwire.CodeMalformed, true, true, true, c.status}, []any{e.Code, e.Final, e.Answered, e.Reached, e.Status})
		})
	}
}

func TestLargeResultOfAPeerIsCut(t *testing.T) {
	for size, cut := range map[int]bool{700_000: false, 3 << 20: true} {
		p := newInstance(t)
		p.delegate = answer(200, `{"taskId":"t/9","peerInstanceId":"a","status":"success","result":"`+strings.Repeat("x", size)+`"}`)
		reply, err := peerwire.ReadReply(exchange(t, p.sender(), attempt()).Reply, "t/9")
		require.NoError(t, err)
		require.Equal(t, peerwire.StatusSuccess, reply.Status)
		if !cut {
			require.Len(t, reply.Result, size)
			continue
		}
		require.Greater(t, len(reply.Result), 512<<10)
		require.Contains(t, reply.Result, " of 3145728 bytes.]")
	}
}

func TestPeerThatCannotBeConnectedIsNotReached(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	closed := sender(t, configured("http://"+l.Addr().String()))

	plain := newInstance(t)
	noTLS := sender(t, configured("https://"+plain.server.Listener.Addr().String()+"/base"))

	server := httptest.NewUnstartedServer(plain)
	server.Config.ErrorLog = quiet()
	server.StartTLS()
	t.Cleanup(server.Close)
	strange := sender(t, configured(server.URL+"/base"))

	noName := sender(t, configured("http://a.example"))
	noName.client.Transport.(*http.Transport).DialContext = func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.DNSError{Err: "no such host", Name: "a.example", IsNotFound: true}
	}
	for name, tr := range map[string]*Transport{
		sink.ReasonNoConnection: closed, sink.ReasonNoTLS: noTLS, "no TLS: unknown certificate": strange, sink.ReasonNoName: noName,
	} {
		e := exchange(t, tr, attempt())
		require.Equal(t, []any{peerwire.CodeUnreachable, false, false, false, 0}, []any{e.Code, e.Final, e.Answered, e.Reached, e.Status}, name)
		require.Equal(t, strings.SplitN(name, ":", 2)[0], e.Reason)
	}
	require.Zero(t, plain.count("POST"))

	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	known := sender(t, configured(server.URL+"/base"), func(c *Config) { c.TLS = &tls.Config{RootCAs: pool} })
	require.False(t, exchange(t, known, attempt()).failed)
}

func TestDialThatTakesTooLongIsATimeoutThatDidNotReachThePeer(t *testing.T) {
	tr := sender(t, configured("http://a.example"))
	tr.client.Transport.(*http.Transport).DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	e := exchange(t, tr, attempt(timeout(50*time.Millisecond)))
	require.Equal(t, []any{peerwire.CodeTimeout, "timeout", false, false, false}, []any{e.Code, e.Reason, e.Final, e.Answered, e.Reached})
}

func TestOneDeadlineCoversHeadersAndBody(t *testing.T) {
	for name, answered := range map[string]bool{"headers": false, "body": true} {
		t.Run(name, func(t *testing.T) {
			p := newInstance(t)
			ctx, expire := expiring(t)
			tr := p.sender()
			p.delegate = func(w http.ResponseWriter, r *http.Request) {
				expire()
				hang(w, r)
			}
			if answered {
				p.delegate = func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					_, _ = io.WriteString(w, `{"taskId":`)
					w.(http.Flusher).Flush()
					<-r.Context().Done()
				}
				tr.client.Transport = afterPOST{tr.client.Transport, expire}
			}
			e := exchangeIn(t, ctx, tr, attempt())
			require.Equal(t, []any{peerwire.CodeTimeout, "timeout", false, answered, true}, []any{e.Code, e.Reason, e.Final, e.Answered, e.Reached})
			require.Equal(t, 1, p.count("POST"))
		})
	}
}

func TestStalledBodyOfAnErrorEndsAtTheDeadlineWithItsStatus(t *testing.T) {
	p := newInstance(t)
	p.delegate = func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(429)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
	ctx, expire := expiring(t)
	tr := p.sender()
	tr.client.Transport = afterPOST{tr.client.Transport, expire}
	e := exchangeIn(t, ctx, tr, attempt())
	require.Equal(t, []any{peerwire.CodePeerBusy, 429, false}, []any{e.Code, e.Status, e.Reached})
}

func TestEndlessBodyIsReadToItsLimit(t *testing.T) {
	for _, status := range []int{200, 500} {
		p := newInstance(t)
		p.delegate = func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.WriteHeader(status)
			for r.Context().Err() == nil {
				if _, err := io.WriteString(w, strings.Repeat("x", 1<<16)); err != nil {
					return
				}
			}
		}
		e := exchange(t, p.sender(), attempt())
		require.Equal(t, status, e.Status)
		require.True(t, e.failed)
	}
}

func TestConnectionLostAfterTheRequestMayHaveReachedThePeer(t *testing.T) {
	p := newInstance(t)
	p.delegate = hangUp
	e := exchange(t, p.sender(), attempt())
	require.Equal(t, []any{peerwire.CodeUnreachable, sink.ReasonConnectionLost, false, false, true}, []any{e.Code, e.Reason, e.Final, e.Answered, e.Reached})
	require.Equal(t, 1, p.count("POST"), "the HTTP client must not send it again")

	p.on(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = w.Write(replyTo("t/9"))
	})
	e = exchange(t, p.sender(), attempt())
	require.Equal(t, []any{peerwire.CodeUnreachable, sink.ReasonConnectionLost, true, true}, []any{e.Code, e.Reason, e.Answered, e.Reached})
}

func TestRedirectIsNotFollowed(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("called") }))
		p := newInstance(t)
		p.delegate = func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL+"/api/peer/delegate", status)
		}
		e := exchange(t, p.sender(), attempt())
		require.Equal(t, []any{peerwire.CodePeerRefused, status, true}, []any{e.Code, e.Status, e.Final})
		p.show(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, status) })
		e = exchange(t, p.sender(), attempt(repeat))
		require.Equal(t, peerwire.CodeOutcomeUnknown, e.Code)
		other.Close()
	}
}

func TestConfigurationDecidesAtEachAttempt(t *testing.T) {
	p := newInstance(t)
	s := configured(p.base)()
	tr := sender(t, func() *peer.Settings { return s })
	require.False(t, exchange(t, tr, attempt()).failed)

	unknown := func(n int64) {
		t.Helper()
		e := exchange(t, tr, attempt(number(n)))
		require.Equal(t, []any{peerwire.CodeUnknownPeer, true, false}, []any{e.Code, e.Final, e.Reached})
	}
	restricted := *s
	restricted.Outbound = []peer.Outbound{s.Outbound[0]}
	restricted.Outbound[0].AllowedAgents = []string{"front"}
	s = &restricted
	e := exchange(t, tr, attempt(number(2)))
	require.Equal(t, []any{peerwire.CodeAgentForbidden, true, false}, []any{e.Code, e.Final, e.Reached})

	s = &peer.Settings{Enabled: true}
	unknown(3)
	s = &peer.Settings{Outbound: restricted.Outbound}
	unknown(4)
	s = nil
	unknown(5)
	require.Equal(t, 1, p.count("POST"))
	e = exchange(t, sender(t, nil), attempt())
	require.Equal(t, peerwire.CodeUnknownPeer, e.Code)
}

func TestAttemptThatCannotBeReadIsFinal(t *testing.T) {
	p := newInstance(t)
	tr := p.sender()
	for i, a := range []sink.Attempt{
		attempt(func(_ *sink.Attempt, b *peerwire.Attempt) { b.Request = []byte(`{"taskId":"t/9"}`) }),
		attempt(func(_ *sink.Attempt, b *peerwire.Attempt) { b.TaskID = "t-10" }),
		attempt(func(_ *sink.Attempt, b *peerwire.Attempt) { b.TaskID = "" }),
	} {
		a.Attempt = int64(i + 1)
		e := exchange(t, tr, a)
		require.Equal(t, []any{peerwire.CodeInvalidInput, true, false}, []any{e.Code, e.Final, e.Reached})
	}
	e := exchange(t, tr, attempt(number(9), func(_ *sink.Attempt, b *peerwire.Attempt) { b.Deadline = time.Now() }))
	require.Equal(t, []any{peerwire.CodeTimeout, false, false}, []any{e.Code, e.Final, e.Reached})
	require.Empty(t, p.calls)
}
