package email

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/testing/memnet"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform/platformtest"
)

func codeOf(t *testing.T, err error) int {
	t.Helper()
	var reply *smtp.SMTPError
	require.ErrorAs(t, err, &reply)
	return reply.Code
}

func TestMailIsTakenWhenItWasReceived(t *testing.T) {
	r := &inbox{}
	address := serve(t, r)
	require.NoError(t, post(t, address, mailOf("hi")))
	require.Len(t, r.All(), 1)
	require.Equal(t, "Subject: Invoice\n\nhi", r.All()[0].Text)
	require.Equal(t, originOf(t, mailOf("hi")), r.All()[0].Origin)

	r.Failing(errBroker)
	err := post(t, address, mailOf("hi"))
	require.Equal(t, 451, codeOf(t, err), "the client sends it again")
	require.NotContains(t, err.Error(), "broker")
	r.Failing(nil)
	require.NoError(t, post(t, address, mailOf("hi")))
	require.Len(t, r.All(), 2)
	require.Equal(t, r.All()[0].Event, r.All()[1].Event)
}

func TestServerTakesMailForItsAddressesOnly(t *testing.T) {
	r := &inbox{}
	c := client(t, serve(t, r, func(c *ServerConfig) { c.MaxRecipients = 1 }))
	require.NoError(t, c.Mail("ada@example.org", nil))
	for _, to := range []string{"eve@evil.test", "agent@example.com.evil.test", "agent@sub.example.com", "xagent@example.com", "agent%evil.test@example.com"} {
		require.Equal(t, 550, codeOf(t, c.Rcpt(to, nil)), to)
	}
	require.NoError(t, c.Rcpt("Agent@EXAMPLE.com", nil))
	require.Equal(t, 452, codeOf(t, c.Rcpt("agent@example.com", nil)), "too many recipients")
}

func TestRefusedMailHasAFinalReplyAndDroppedMailDoesNot(t *testing.T) {
	r := &inbox{}
	address := serve(t, r, func(c *ServerConfig) { c.MaxMessage, c.MaxText = 4000, 100 })
	require.Equal(t, 550, codeOf(t, post(t, address, mailOf("hi", "From", "eve@evil.test"))))
	require.Equal(t, 552, codeOf(t, post(t, address, mailOf(strings.Repeat("x", 101)))))
	require.Equal(t, 552, codeOf(t, post(t, address, mailOf(strings.Repeat("x\r\n", 4000)))))
	require.NoError(t, post(t, address, mailOf("hi", "Auto-Submitted", "auto-replied")))
	require.NoError(t, client(t, address).SendMail("", []string{"agent@example.com"}, strings.NewReader(mailOf("bounce"))))
	require.Empty(t, r.All())
	c := client(t, address) // the empty sender of one mail is not that of the next
	require.NoError(t, c.SendMail("", []string{"agent@example.com"}, strings.NewReader(mailOf("bounce"))))
	require.NoError(t, c.SendMail("ada@example.org", []string{"agent@example.com"}, strings.NewReader(mailOf("hi"))))
	require.Len(t, r.All(), 1)
}

// dialog sends raw bytes and returns everything that the server answers until it has sent a line with the code.
func dialog(t *testing.T, address, send, until string) string {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	require.NoError(t, conn.SetDeadline(time.Now().Add(platformtest.WaitFor)))
	_, err = conn.Write([]byte(send))
	require.NoError(t, err)
	var got strings.Builder
	buffer := make([]byte, 4096)
	for !strings.Contains(got.String(), until) {
		n, err := conn.Read(buffer)
		got.Write(buffer[:n])
		if err != nil {
			require.ErrorIs(t, err, io.EOF, got.String())
			return got.String()
		}
	}
	return got.String()
}

func TestEndOfMailIsOnlyTheOneOfTheStandard(t *testing.T) {
	r := &inbox{}
	address := serve(t, r)
	for i, end := range []string{"\n.\n", "\r\n.\n", "\n.\r\n", "\r.\r"} {
		smuggled := "MAIL FROM:<x@example.org>\r\nRCPT TO:<agent@example.com>\r\nDATA\r\n" + mailOf("smuggled", "Message-ID", "<evil@example.org>")
		one := mailOf("one", "Message-ID", "<"+strconv.Itoa(i)+"@example.org>") + end + smuggled + "\r\n.\r\nQUIT\r\n"
		dialog(t, address, "EHLO x\r\nMAIL FROM:<a@example.org>\r\nRCPT TO:<agent@example.com>\r\nDATA\r\n"+one, "221 ")
	}
	require.Len(t, r.All(), 4)
	for _, in := range r.All() {
		require.NotEqual(t, "<evil@example.org>", in.Origin.MessageID)
	}
}

func TestHostileClientsAreRefused(t *testing.T) {
	r := &inbox{}
	address := serve(t, r)
	require.Contains(t, dialog(t, address, "EHLO x\r\nMAIL FROM:<a@b>\r\nDATA\r\n", "502 "), "502 ")
	require.Contains(t, dialog(t, address, strings.Repeat("x", 100_000)+"\r\n", "500 "), "500 ")
	// A connection that is cut within a mail passes nothing on.
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	_, err = conn.Write([]byte("EHLO x\r\nMAIL FROM:<a@example.org>\r\nRCPT TO:<agent@example.com>\r\nDATA\r\n" + mailOf("half")))
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	require.NoError(t, post(t, address, mailOf("whole")))
	require.Len(t, r.All(), 1)
}

func TestMailThatCannotBeReadIsRefusedOrSentAgain(t *testing.T) {
	s, err := NewServer(ServerConfig{Acceptance: accepting(), Domain: "mx.example.com"}, &inbox{})
	require.NoError(t, err)
	for broken, code := range map[error]int{smtp.ErrTooLongLine: 554, smtp.ErrDataTooLarge: 552, smtp.ErrDataReset: 451, io.ErrUnexpectedEOF: 451} {
		require.Equal(t, code, codeOf(t, (&session{server: s, ctx: t.Context()}).Data(iotest.ErrReader(broken))), broken)
	}
}

func TestConnectionsAreBounded(t *testing.T) {
	address := serve(t, &inbox{}, func(c *ServerConfig) { c.MaxPerAddress = 2 })
	one, two := client(t, address), client(t, address)
	require.NoError(t, one.Noop())
	require.NoError(t, two.Noop())
	require.Contains(t, dialog(t, address, "", "421 "), "421 4.7.0 Too many connections")
	require.NoError(t, one.Quit())
	require.Eventually(t, func() bool {
		c, err := smtp.Dial(address)
		if err != nil {
			return false
		}
		defer func() { _ = c.Close() }()
		return c.Noop() == nil
	}, platformtest.WaitFor, platformtest.Tick)
}

// The mails that arrive and those that the receiver has are bounded together: connections alone would be too many bytes.
func TestMailsInMemoryAreBounded(t *testing.T) {
	received, next := make(chan struct{}, 1), make(chan struct{})
	address := serve(t, adapter.ReceiverFunc(func(ctx context.Context, _ adapter.Inbound) error {
		received <- struct{}{}
		select {
		case <-next:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}), func(c *ServerConfig) { c.MaxMessage, c.MaxBuffered = 300<<10, 400<<10 })
	attached := strings.Repeat(strings.Repeat("x", 70)+"\r\n", 3500) // 250 KB
	large := func(id string) string {
		return mailOf("--b\r\n\r\nhi\r\n--b\r\nContent-Type: application/pdf\r\n\r\n"+attached+"\r\n--b--\r\n", "Content-Type", "multipart/mixed; boundary=b", "Message-ID", id)
	}
	c := client(t, address)
	first := make(chan error, 1)
	go func() {
		first <- c.SendMail("ada@example.org", []string{"agent@example.com"}, strings.NewReader(large("<m1@example.org>")))
	}()
	<-received
	require.Equal(t, 451, codeOf(t, post(t, address, large("<m2@example.org>"))))
	close(next)
	require.NoError(t, <-first)
	require.NoError(t, post(t, address, large("<m2@example.org>")), "there is room again")
}

func TestIdleClientsAreDisconnected(t *testing.T) {
	address := serve(t, &inbox{}, func(c *ServerConfig) { c.Timeout = 50 * time.Millisecond })
	require.Contains(t, dialog(t, address, "EHLO x\r\n", "421 "), "421 4.4.2")
}

// lines reads the replies of a connection to its end.
func lines(c net.Conn) <-chan string {
	all := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(c)
		all <- string(text)
	}()
	return all
}

func TestConnectionsWithoutMailKeepNoMailOut(t *testing.T) {
	r := &inbox{}
	address := serve(t, r, func(c *ServerConfig) { c.MaxPerAddress = 100 })
	var idle []<-chan string
	for range 100 {
		c, err := net.Dial("tcp", address)
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		_, err = c.Write([]byte("EHLO x\r\nNOOP\r\n"))
		require.NoError(t, err)
		idle = append(idle, lines(c))
	}
	for i := range 20 {
		require.NoError(t, post(t, address, mailOf("hi", "Message-ID", "<"+strconv.Itoa(i)+"@example.org>")))
	}
	require.Len(t, r.All(), 20)
	require.Contains(t, <-idle[0], "421 4.4.2", "the one that was idle for the longest")
}

func TestConnectionThatBringsMailStays(t *testing.T) {
	r := &inbox{}
	address := serve(t, r, func(c *ServerConfig) { c.MaxConnections = 2 })
	kept, idle := client(t, address), client(t, address)
	require.NoError(t, idle.Noop())
	require.NoError(t, kept.SendMail("ada@example.org", []string{"agent@example.com"}, strings.NewReader(mailOf("hi"))))
	require.NoError(t, client(t, address).Noop())
	require.Error(t, idle.Noop())
	require.NoError(t, kept.Noop())
}

func TestReceivedMailIsNotGivenUpForANewConnection(t *testing.T) {
	begun, next := make(chan struct{}), make(chan struct{})
	address := serve(t, adapter.ReceiverFunc(func(context.Context, adapter.Inbound) error {
		close(begun)
		<-next
		return nil
	}), func(c *ServerConfig) { c.MaxConnections = 1 })
	c, posted := client(t, address), make(chan error, 1)
	go func() {
		posted <- c.SendMail("ada@example.org", []string{"agent@example.com"}, strings.NewReader(mailOf("hi")))
	}()
	<-begun
	require.Contains(t, dialog(t, address, "", "421 "), "421 4.7.0 Too many connections")
	close(next)
	require.NoError(t, <-posted)
}

func TestLifeWithoutMailIsBounded(t *testing.T) {
	for name, every := range map[string]time.Duration{"slow": time.Minute, "fast": time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, err := NewServer(ServerConfig{Acceptance: accepting(), Domain: "mx.example.com"}, &inbox{})
				require.NoError(t, err)
				l := memnet.Listen()
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- s.Serve(ctx, l) }()
				conn, err := l.DialContext(t.Context(), "tcp", "")
				require.NoError(t, err)
				c, begun := smtp.NewClient(conn), time.Now()
				send := func() error {
					return c.SendMail("ada@example.org", []string{"agent@example.com"}, strings.NewReader(mailOf("hi")))
				}
				for range 10 { // a relay that keeps its connection
					time.Sleep(every)
					require.NoError(t, send())
				}
				require.Equal(t, 10*every, time.Since(begun))
				for err == nil {
					time.Sleep(every)
					err = c.Noop()
				}
				// Without buffers, the last command and the last reply wait for each other.
				require.LessOrEqual(t, time.Since(begun), 10*every+min(sessionLife, sessionReads*every)+every+s.config.Timeout)
				_ = conn.Close()
				cancel()
				require.NoError(t, <-ended)
			})
		})
	}
}

func TestTLSAndLoginCanBeRequired(t *testing.T) {
	serverTLS, clientTLS := certificates(t)
	clientTLS.ServerName = "example.com"
	r := &inbox{}
	address := serve(t, r, func(c *ServerConfig) {
		c.TLS, c.RequireTLS = serverTLS, true
		c.Authenticate = func(name, password string) bool { return name == "relay" && password == "secret" }
	})
	require.Equal(t, 530, codeOf(t, client(t, address).Mail("ada@example.org", nil)))
	open := func() *smtp.Client {
		c, err := smtp.DialStartTLS(address, clientTLS)
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	require.Equal(t, 530, codeOf(t, open().Mail("ada@example.org", nil)))
	require.Equal(t, 535, codeOf(t, open().Auth(sasl.NewPlainClient("", "relay", "wrong"))))
	c := open()
	require.NoError(t, c.Auth(sasl.NewPlainClient("", "relay", "secret")))
	replies := map[int]int{}
	for range 30 {
		guesser := open()
		for i := range 4 { // in one connection too
			replies[codeOf(t, guesser.Auth(sasl.NewPlainClient("", "relay", strconv.Itoa(i))))]++
		}
	}
	require.Equal(t, map[int]int{535: 49, 454: 71}, replies)
	require.NoError(t, open().Auth(sasl.NewPlainClient("", "relay", "secret")), "it has worked before")
	require.Equal(t, 454, codeOf(t, open().Auth(sasl.NewPlainClient("", "spare", "secret"))))
	require.NoError(t, c.SendMail("ada@example.org", []string{"agent@example.com"}, strings.NewReader(mailOf("hi"))))
	require.Len(t, r.All(), 1)

	implicit := serve(t, r, func(c *ServerConfig) { c.TLS, c.ImplicitTLS, c.RequireTLS = serverTLS, true, true })
	conn, err := tls.Dial("tcp", implicit, clientTLS)
	require.NoError(t, err)
	secure := smtp.NewClient(conn)
	t.Cleanup(func() { _ = secure.Close() })
	require.NoError(t, secure.SendMail("ada@example.org", []string{"agent@example.com"}, strings.NewReader(mailOf("hi"))))
	require.Len(t, r.All(), 2)
}

func TestStopCancelsWhatIsBeingReceived(t *testing.T) {
	begun := make(chan struct{})
	s, err := NewServer(ServerConfig{Acceptance: accepting(), Domain: "mx.example.com"}, adapter.ReceiverFunc(func(ctx context.Context, _ adapter.Inbound) error {
		close(begun)
		<-ctx.Done()
		return ctx.Err()
	}))
	require.NoError(t, err)
	l, _ := listen(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended, posted := make(chan error, 1), make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	c := client(t, l.Addr().String())
	go func() {
		posted <- c.SendMail("ada@example.org", []string{"agent@example.com"}, strings.NewReader(mailOf("hi")))
	}()
	<-begun
	cancel()
	require.NoError(t, <-ended)
	require.Error(t, <-posted, "the client sends it again")
	other, _ := listen(t)
	require.ErrorIs(t, s.Serve(t.Context(), other), ErrConfig)
}

func TestMailOfAConversationIsPassedOnOneAfterTheOther(t *testing.T) {
	entered, leave, calls := make(chan struct{}), make(chan struct{}), 0
	o := inOrder(adapter.ReceiverFunc(func(context.Context, adapter.Inbound) error {
		calls++
		close(entered)
		<-leave
		return nil
	}))
	in := adapter.Inbound{Origin: originOf(t, mailOf("hi"))}
	ended := make(chan error, 1)
	go func() { ended <- o.Receive(context.Background(), in) }()
	<-entered
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, o.Receive(ctx, in), context.Canceled, "the first one is not done")
	close(leave)
	require.NoError(t, <-ended)
	require.Equal(t, 1, calls)
}
