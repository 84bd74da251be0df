package peerhttp

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/peer"
	"github.com/turntable-streams/turntable/topics"
)

// upload opens a connection that sends a request of a peer but for the last byte of its body.
func (d *rig) upload(token, taskID string) net.Conn {
	d.t.Helper()
	c, err := net.Dial("tcp", d.http.Listener.Addr().String())
	require.NoError(d.t, err)
	d.t.Cleanup(func() { _ = c.Close() })
	body := requestOf(taskID)
	_, err = fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
		DelegatePath, token, len(body), body[:len(body)-1])
	require.NoError(d.t, err)
	return c
}

// A slot is taken before the body is read, so that slow uploads cannot pass the check together.
func TestSlowUploadsTakeSlots(t *testing.T) {
	for name, c := range map[string]struct {
		tokens []string
		limits string
		most   int
	}{
		"of all tokens":         {[]string{"T2", "T3"}, `"inboundMaxConcurrent":4`, 4},
		"of a token":            {[]string{"T4"}, `"inboundMaxConcurrent":4`, 1},
		"of a token and of all": {[]string{"T4", "T2"}, `"inboundMaxConcurrent":3`, 3},
		"as many as there are":  {[]string{"T2"}, `"inboundMaxConcurrent":64`, 64},
	} {
		t.Run(name, func(t *testing.T) {
			d := newRig(t, func(c *Config) { c.Limits = auth.Limits{BodyIdle: waitLimit} }) // the uploads wait for one another
			d.configure(strings.Replace(usual, `"inboundMaxConcurrent":4`, c.limits, 1))
			const uploads = 80
			answers := make(chan string, uploads)
			var conns []net.Conn
			for i := range uploads {
				conns = append(conns, d.upload(c.tokens[i%len(c.tokens)], fmt.Sprint("t", i)))
			}
			var reading sync.WaitGroup
			for _, conn := range conns {
				reading.Go(func() {
					raw, _ := io.ReadAll(conn)
					answers <- string(raw)
				})
			}
			for range uploads - c.most {
				select {
				case a := <-answers:
					require.Contains(t, a, "429 Too Many Requests")
					require.Contains(t, a, "Retry-After: 1")
					require.Contains(t, a, "concurrency_limit")
				case <-time.After(waitLimit):
					require.FailNow(t, "more uploads than slots were admitted")
				}
			}
			require.Equal(t, c.most, d.handler.slots.len())
			require.Empty(t, answers)
			for _, conn := range conns {
				_ = conn.Close()
			}
			reading.Wait()
			d.eventually(func() bool { return d.handler.slots.len() == 0 }, "all slots are free again")
			require.Empty(t, d.group.kinds())
		})
	}
}

func TestTokensHaveSlotsOfTheirOwn(t *testing.T) {
	d := newRig(t)
	first := d.later(t.Context(), "POST", DelegatePath, requestOf("a"), t4)
	d.commanded(topics.PeerRun, 1)
	g := d.delegate(requestOf("b"), t4)
	require.Equal(t, []any{429, "concurrency_limit", "1"}, []any{g.status, g.fault(t).Code, g.header.Get("Retry-After")})
	second := d.later(t.Context(), "POST", DelegatePath, requestOf("b"), "Authorization: Bearer T5")
	d.commanded(topics.PeerRun, 2) // the other token of the label
	d.group.finish("partner-d", "a", "")
	d.group.finish("partner-d", "b", "")
	require.Equal(t, 200, (<-first).status)
	require.Equal(t, 200, (<-second).status)
	require.Zero(t, d.handler.slots.len())
}

func TestDetachedTaskKeepsItsSlotUntilItEnds(t *testing.T) {
	d := newRig(t)
	async := func(id string) int {
		return d.delegate(requestOf(id, `,"timeoutMs":60000`), t4, "Prefer: respond-async").status
	}
	require.Equal(t, 202, async("a"))
	require.Equal(t, 429, async("b"))
	d.group.finish("partner-d", "a", "")
	require.Equal(t, 202, async("b"), "its reply was seen")
	d.clock.Advance(time.Minute - time.Millisecond)
	require.Equal(t, 429, async("c"))
	d.clock.Advance(time.Millisecond)
	require.Equal(t, 202, async("c"), "its deadline has passed")
}

func TestRepeatedRequestSharesTheSlotOfItsTask(t *testing.T) {
	d := newRig(t)
	ctx, disconnect := context.WithCancel(context.Background())
	lost := d.later(ctx, "POST", DelegatePath, requestOf("t"), t2)
	d.commanded(topics.PeerRun, 1)
	d.disconnected(disconnect)
	d.commanded(topics.PeerLeave, 1)
	<-lost
	again := d.later(t.Context(), "POST", DelegatePath, requestOf("t"), t2)
	d.commanded(topics.PeerRun, 2)
	require.Equal(t, 1, d.handler.slots.len())
	other := d.later(t.Context(), "POST", DelegatePath, requestOf("t", `,"model":"m"`), t2)
	require.Equal(t, 409, (<-other).status)
	d.group.finish("partner-b", "t", "")
	require.Equal(t, 200, (<-again).status)
	require.Zero(t, d.handler.slots.len())
}

// The sink of a dispatcher restarts while as many of its tasks run as may.
func TestRepeatedRequestNeedsNoFreeSlot(t *testing.T) {
	d := newRig(t)
	require.Equal(t, 202, d.delegate(requestOf("t"), t4, "Prefer: respond-async").status)
	require.Equal(t, 202, d.delegate(requestOf("t"), t4, "Prefer: respond-async").status)
	require.Equal(t, 429, d.delegate(requestOf("u"), t4, "Prefer: respond-async").status)
	require.Equal(t, 429, d.delegate(requestOf("t", `,"model":"m"`), t4, "Prefer: respond-async").status, "another task")
	require.Len(t, d.group.of(topics.PeerRun), 2)
	for name, body := range map[string]string{
		"no JSON": "{", "no task": "{}", "too large": strings.Repeat(" ", peerwire.MaxBody+1),
		"a callback without the preference": requestOf("t", `,"callback":{"token":"c"}`),
	} {
		g := d.delegate(body, t4)
		require.Equal(t, []any{429, "concurrency_limit", "1"}, []any{g.status, g.fault(t).Code, g.header.Get("Retry-After")}, name)
	}
	slow := d.upload("T4", "t") // of which there is one at a time
	d.eventually(func() bool { return d.handler.peers.Len() == 1 })
	d.eventually(func() bool { return d.delegate(requestOf("t"), t4, "Prefer: respond-async").status == 429 })
	require.NoError(t, slow.Close())
	d.group.finish("partner-d", "t", "")
	d.eventually(func() bool { return d.handler.peers.Len() == 0 })
	require.Zero(t, d.handler.slots.len())
	require.Empty(t, d.handler.slots.spare)
}

// Slots are never taken by more than the limits, and never lost.
func TestSlotsAreBoundedAndNotLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := clock.NewFake(noon)
		s := newSlots(c)
		all := rapid.IntRange(1, 5).Draw(t, "all")
		var open []*lease
		take := func() (l *lease, ok bool) {
			if len(open) == 0 {
				return nil, false
			}
			i := rapid.IntRange(0, len(open)-1).Draw(t, "request")
			l = open[i]
			open = append(open[:i], open[i+1:]...)
			return l, true
		}
		task := func() running { return running{taskID: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "task")} }
		t.Repeat(map[string]func(*rapid.T){
			"acquire": func(t *rapid.T) {
				in := peer.Inbound{MaxConcurrent: rapid.IntRange(1, 3).Draw(t, "own")}
				in.TokenSHA256[0] = byte(rapid.IntRange(0, 1).Draw(t, "token"))
				before := s.len()
				switch l := s.acquire(in, all); {
				case l == nil:
					require.Positive(t, before, "there is no reason to refuse")
				case l.slot.spare:
					open = append(open, l)
					require.LessOrEqual(t, s.spare[in.TokenSHA256], before)
				default:
					open = append(open, l)
					own := 0
					for x := range s.taken {
						if x.token == in.TokenSHA256 {
							own++
						}
					}
					require.LessOrEqual(t, own, in.MaxConcurrent)
				}
			},
			"bind": func(t *rapid.T) {
				if l, ok := take(); ok {
					if l.bind(task()) {
						require.False(t, l.slot.spare)
						open = append(open, l)
					} else {
						l.end()
					}
				}
			},
			"end": func(t *rapid.T) {
				if l, ok := take(); ok {
					l.end()
					l.end()
				}
			},
			"keep": func(t *rapid.T) {
				if l, ok := take(); ok {
					l.keep(c.Now().Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "time"))))
					l.end()
				}
			},
			"ended":   func(t *rapid.T) { s.ended(task()) },
			"advance": func(*rapid.T) { c.Advance(1) },
			"": func(t *rapid.T) {
				require.LessOrEqual(t, s.len(), all)
				used, spare := map[*slot]int{}, 0
				for _, n := range s.spare {
					require.Positive(t, n)
					spare += n
				}
				for _, l := range open {
					if l.slot.spare {
						spare--
						continue
					}
					used[l.slot]++
					require.Contains(t, s.taken, l.slot, "the slot of a request is taken")
				}
				require.Zero(t, spare)
				for x := range s.taken {
					require.Equal(t, used[x], x.users)
				}
			},
		})
		for _, l := range open {
			l.end()
		}
		c.Advance(10)
		s.acquire(peer.Inbound{MaxConcurrent: 1}, 1).end()
		require.Zero(t, s.len())
	})
}
