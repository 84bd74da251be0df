package email

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/emersion/go-imap/v2"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/turntable-streams/turntable/internal/testing/memnet"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform/platformtest"
)

// script answers a command of the n-th connection (from 1). It returns false to have a usual answer written, of a server with two
// messages. A script that writes nothing and returns true is silent.
type script func(w io.Writer, n int, tag, command string) bool

// scripted runs a Mailbox with a server that follows a script, in a bubble, until the test ends.
func scripted(t *testing.T, r *inbox, f script, change ...func(*MailboxConfig)) *observer.ObservedLogs {
	t.Helper()
	l := memnet.Listen()
	var serving sync.WaitGroup
	serving.Go(func() {
		for n := 1; ; n++ {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { usualAnswers(conn, n, f) })
		}
	})
	core, logged := observer.New(zap.InfoLevel)
	c := MailboxConfig{Acceptance: accepting(), Host: "127.0.0.1", Security: NoTLS, Username: "agent", Password: "secret", Logger: zap.New(core)}
	c = platformtest.With(c, change...)
	m, err := NewMailbox(c, r)
	require.NoError(t, err)
	m.connect = l.DialContext
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
		_ = l.Close()
		serving.Wait()
	})
	return logged
}

func usualAnswers(conn net.Conn, n int, f script) {
	defer func() { _ = conn.Close() }()
	_, _ = io.WriteString(conn, "* OK [CAPABILITY IMAP4rev1 IDLE] hi\r\n")
	lines, idle := bufio.NewScanner(conn), ""
	for lines.Scan() {
		tag, command, _ := strings.Cut(lines.Text(), " ")
		name, _, _ := strings.Cut(command, " ")
		if tag == "DONE" {
			tag, name, command = idle, tag, tag
		}
		if f(conn, n, tag, command) {
			continue
		}
		text := ""
		switch {
		case name == "IDLE":
			idle = tag
			_, _ = io.WriteString(conn, "+ idling\r\n")
			continue
		case name == "LOGIN":
			text = "[CAPABILITY IMAP4rev1 IDLE]"
		case name == "SELECT":
			_, _ = io.WriteString(conn, "* 2 EXISTS\r\n* OK [UIDVALIDITY 1] x\r\n")
		case strings.HasPrefix(command, "UID SEARCH"):
			_, _ = io.WriteString(conn, "* SEARCH 1 2\r\n")
		case strings.Contains(command, "RFC822.SIZE"):
			_, _ = fmt.Fprintf(conn, "* 1 FETCH (UID %s RFC822.SIZE 254)\r\n", uidOf(command))
		case strings.HasPrefix(command, "UID FETCH"):
			_, _ = io.WriteString(conn, whole(uidOf(command)))
		}
		_, _ = fmt.Fprintf(conn, "%s OK %s done\r\n", tag, text)
	}
}

func uidOf(command string) string { return strings.Fields(command)[2] }

// fetches reports whether a command reads the body of a message.
func fetches(command, uid string) bool {
	return strings.HasPrefix(command, "UID FETCH "+uid+" (UID BODY")
}

// whole is the answer to a fetch of a message with the text "/one" or "/two".
func whole(uid string) string {
	mail := mailOf(map[string]string{"1": "/one", "2": "/two"}[uid], "Message-ID", "<"+uid+"@example.org>")
	return fmt.Sprintf("* %s FETCH (UID %s BODY[] {%d}\r\n%s)\r\n", uid, uid, len(mail), mail)
}

func (i *inbox) texts() []string {
	got := []string{}
	for _, in := range i.All() {
		got = append(got, in.Text)
	}
	return got
}

func TestSilentServerIsReportedAndTheMailboxConnectsAgain(t *testing.T) {
	for at, f := range map[string]func(command string) bool{
		"LOGIN":       func(command string) bool { return strings.HasPrefix(command, "LOGIN") },
		"SELECT":      func(command string) bool { return strings.HasPrefix(command, "SELECT") },
		"UID SEARCH":  func(command string) bool { return strings.HasPrefix(command, "UID SEARCH") },
		"UID FETCH":   func(command string) bool { return fetches(command, "1") },
		"UID STORE":   func(command string) bool { return strings.HasPrefix(command, "UID STORE") },
		"IDLE":        func(command string) bool { return command == "IDLE" },
		"end of IDLE": func(command string) bool { return command == "DONE" },
	} {
		t.Run(at, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &inbox{}
				logged := scripted(t, r, func(_ io.Writer, n int, _, command string) bool { return n == 1 && f(command) })
				time.Sleep(150 * time.Second) // a poll, the limit of an answer and the wait before the next connection
				require.Contains(t, r.texts(), "/two")
				failed := failures(logged).All()
				require.Len(t, failed, 1)
				require.Equal(t, "the server does not answer in time", failed[0].ContextMap()["reason"])
				require.Equal(t, at, failed[0].ContextMap()["command"])
			})
		})
	}
}

func TestServerThatSendsByteAfterByteIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &inbox{}
		logged := scripted(t, r, func(w io.Writer, n int, _, command string) bool {
			if n > 1 || !fetches(command, "1") {
				return false
			}
			_, _ = io.WriteString(w, "* 1 FETCH (UID 1 BODY[] {1000}\r\n")
			for range 1000 {
				time.Sleep(20 * time.Second)
				if _, err := io.WriteString(w, "x"); err != nil {
					break
				}
			}
			return true
		})
		time.Sleep(90 * time.Second)
		require.Equal(t, []string{"/one", "/two"}, r.texts()[:2])
		require.Equal(t, "the server does not answer in time", failures(logged).All()[0].ContextMap()["reason"])
	})
}

func TestSlowAnswerIsReadToItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &inbox{}
		body := strings.Repeat("slow ", 400<<10)
		mail := mailOf(body)
		logged := scripted(t, r, func(w io.Writer, _ int, tag, command string) bool {
			if !fetches(command, "1") {
				return false
			}
			_, _ = fmt.Fprintf(w, "* 1 FETCH (UID 1 BODY[] {%d}\r\n", len(mail))
			for rest := mail; rest != ""; rest = rest[min(len(rest), 20000):] {
				time.Sleep(time.Second)
				if _, err := io.WriteString(w, rest[:min(len(rest), 20000)]); err != nil {
					break
				}
			}
			_, _ = fmt.Fprintf(w, ")\r\n%s OK done\r\n", tag)
			return true
		}, func(c *MailboxConfig) { c.MaxText = 4 << 20 })
		time.Sleep(2 * time.Minute)
		require.Empty(t, failures(logged).All())
		require.Equal(t, "/two", r.texts()[1])
	})
}

func TestAnswerThatIsFarTooLongIsNotRead(t *testing.T) {
	for name, begin := range map[string]string{
		"literal": "* 1 FETCH (UID 1 BODY[] {1073741824}\r\n",
		"string":  `* 1 FETCH (UID 1 BODY[] "`,
		"atom":    "* 1 FETCH (UID 1 ",
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			var sent atomic.Int64
			synctest.Test(t, func(t *testing.T) {
				r := &inbox{}
				logged := scripted(t, r, func(w io.Writer, _ int, _, command string) bool {
					if !fetches(command, "1") {
						return false
					}
					_, _ = io.WriteString(w, begin)
					for block := strings.Repeat("a", 1<<16); ; {
						n, err := io.WriteString(w, block)
						sent.Add(int64(n))
						if err != nil {
							return true
						}
					}
				}, func(c *MailboxConfig) { c.MaxMessage = 1 << 20 })
				time.Sleep(10 * time.Second)
				require.Equal(t, "/two", r.texts()[0])
				entry := failures(logged).All()[0]
				require.Equal(t, "the server's answer is too long", entry.ContextMap()["reason"])
				require.EqualValues(t, 1, entry.ContextMap()["uid"])
			})
			runtime.ReadMemStats(&after)
			require.Less(t, sent.Load(), int64(3<<20))
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20))
		})
	}
}

func TestMessageThatCannotBeReadIsReportedAndTriedAgainLater(t *testing.T) {
	for name, tc := range map[string]struct {
		answer, reason string
	}{
		"unparsed":   {"* 1 FETCH (UID 1 BODY[]<0>{9}\r\nsecret(((", "the server's answer cannot be parsed"},
		"refused":    {"%s NO [SERVERBUG] secret\r\n", "the server refused: NO SERVERBUG"},
		"disconnect": {"", "connection lost"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &inbox{}
				var broken atomic.Bool
				broken.Store(true)
				logged := scripted(t, r, func(w io.Writer, _ int, tag, command string) bool {
					switch {
					case !fetches(command, "1") || !broken.Load():
						return false
					case tc.answer == "":
						_ = w.(net.Conn).Close()
					case strings.HasPrefix(tc.answer, "%"):
						_, _ = fmt.Fprintf(w, tc.answer, tag)
					default:
						_, _ = io.WriteString(w, tc.answer)
					}
					return true
				})
				time.Sleep(20 * time.Second)
				require.Equal(t, "/two", r.texts()[0])
				require.NotContains(t, r.texts(), "/one")
				reported := logged.FilterMessageSnippet("a mail cannot be read").All()
				require.Len(t, reported, 1)
				require.EqualValues(t, 1, reported[0].ContextMap()["uid"])
				require.Equal(t, tc.reason, reported[0].ContextMap()["reason"])
				for _, entry := range logged.All() {
					require.NotContains(t, fmt.Sprint(entry.Message, entry.ContextMap()), "secret")
				}
				broken.Store(false)
				time.Sleep(2 * time.Minute)
				require.Contains(t, r.texts(), "/one")
			})
		})
	}
}

func TestServerThatCannotAnswerPartialFetchesIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &inbox{}
		scripted(t, r, func(w io.Writer, _ int, tag, command string) bool {
			if !strings.Contains(command, "<0.") {
				return false
			}
			mail := mailOf("/one")
			_, _ = fmt.Fprintf(w, "* 1 FETCH (UID 1 BODY[]<0>{%d}\r\n%s)\r\n%s OK\r\n", len(mail), mail, tag)
			return true
		})
		time.Sleep(time.Second)
		require.Equal(t, []string{"/one", "/two"}, r.texts()[:2])
	})
}

func TestResultOfASearchWithoutEndIsNotListed(t *testing.T) {
	for _, set := range []string{"1:4294967295", "1:*", "*"} {
		synctest.Test(t, func(t *testing.T) {
			r := &inbox{}
			var searches atomic.Int64
			scripted(t, r, func(w io.Writer, _ int, tag, command string) bool {
				if !strings.HasPrefix(command, "UID SEARCH") || searches.Add(1) > 1 {
					return false
				}
				_, _ = fmt.Fprintf(w, "* ESEARCH (TAG %q) UID ALL %s\r\n%s OK\r\n", tag, set, tag)
				return true
			})
			time.Sleep(2 * time.Minute) // the next search
			require.Equal(t, []string{"/one", "/two"}, r.texts()[:2])
		})
	}
}

func TestMissingSTARTTLSIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logged := scripted(t, &inbox{}, func(w io.Writer, _ int, tag, command string) bool {
			require.Equal(t, "STARTTLS", command)
			_, _ = fmt.Fprintf(w, "%s BAD unknown command\r\n", tag)
			return true
		}, func(c *MailboxConfig) { c.Security = StartTLS })
		time.Sleep(time.Second / 2)
		require.Equal(t, "the server offers no STARTTLS: BAD", failures(logged).All()[0].ContextMap()["reason"])
	})
}

func TestPostponedMessagesAreBounded(t *testing.T) {
	p := postponed{}
	p.folder(1)
	now := noon
	for uid := range 3 * maxPostponed {
		p.add(1+imap.UID(uid), now)
		now = now.Add(time.Millisecond)
	}
	require.Len(t, p.messages, maxPostponed)
	require.True(t, p.has(3*maxPostponed, now))
	require.False(t, p.has(1, now))
	for range 10 {
		require.LessOrEqual(t, p.add(5, now), longestPostponement)
	}
	p.folder(2)
	require.Empty(t, p.messages)
}
