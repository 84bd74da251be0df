package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/turntable-streams/turntable/processors/embedded"
	"github.com/turntable-streams/turntable/topics"
)

// play is the play in progress.
type play struct {
	flags    flags
	screen   *screen
	errs     io.Writer
	dir      string
	inbox    *inbox
	slack    *slackPlatform
	mail     *mailPlatform
	smtp     string // where the app takes mail
	brokers  []string
	app      *child
	address  string
	settings string
}

// runPlay plays all steps.
func runPlay(ctx context.Context, f flags, out, errs io.Writer) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, f.timeout, fmt.Errorf("not finished within %s", f.timeout))
	defer cancel()
	dir, err := os.MkdirTemp("", "channels")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	broker, err := embedded.Start(embedded.Config{Logger: newLogger(errs, f.verbose)})
	if err != nil {
		return err
	}
	defer func() { _ = broker.Close() }()
	s := &screen{out: out}
	p := &play{flags: f, screen: s, errs: errs, dir: dir, inbox: newInbox(s), brokers: broker.Addrs()}
	p.slack = newSlackPlatform(p.inbox)
	defer p.slack.server.Close()
	if p.mail, err = newMailPlatform(p.inbox); err != nil {
		return err
	}
	defer p.mail.close()
	if err := p.write(); err != nil {
		return err
	}
	if err := p.start(ctx); err != nil {
		return err
	}
	defer func() { p.app.stop() }()
	for _, step := range []func(context.Context) error{p.direct, p.thread, p.byMail, p.killed, p.approval, p.removed} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if f.hold {
		p.screen.title("The app keeps running at " + p.address + " until Ctrl+C.")
		<-ctx.Done()
	}
	return nil
}

const (
	ana, ben   = "UANA", "UBEN"
	anasRoom   = "DANA"   // her conversation with the app
	opsRoom    = "COPS"   // a channel
	opsThread  = "1700.1" // a thread in it
	cleo       = "cleo@customer.example"
	desk       = "desk@company.example"
	firstMail  = "<first@customer.example>"
	secondMail = "<second@customer.example>"
)

const slackAccount = "  - {channel: slack, name: main, agent: concierge, prefix: bracket}\n"

// writeSettings writes who is answered.
func (p *play) writeSettings(accounts string) error {
	text := "agents:\n  - {name: concierge, description: Hands work off.}\naccounts:\n" + accounts +
		"  - {channel: email, name: desk, agent: concierge}\n"
	return os.WriteFile(p.settings, []byte(text), 0o600)
}

// freeAddress returns a loopback address on which no program listens. Its port is below those that systems give to programs that
// want any: none gets it while the app restarts.
func freeAddress() (address string, err error) {
	for range 100 {
		var l net.Listener
		address = fmt.Sprintf("127.0.0.1:%d", 15_000+rand.IntN(15_000))
		if l, err = net.Listen("tcp", address); err == nil {
			return address, l.Close()
		}
	}
	return "", err
}

// write writes the files of the app.
func (p *play) write() error {
	p.settings = filepath.Join(p.dir, "settings.yaml")
	var err error
	if p.smtp, err = freeAddress(); err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(p.mail.listener.Addr().String())
	if err != nil {
		return err
	}
	adapters := fmt.Sprintf(`slack:
  - {name: main, token_variable: SLACK_TOKEN, signing_secret_variable: SLACK_SIGNING_SECRET, base_url: %q}
email:
  - {name: desk, from: %s, senders: ["@customer.example"], listen: %q, domain: company.example, host: %s, port: %s, no_tls: true}
`, p.slack.server.URL+"/api/", desk, p.smtp, host, port)
	return errors.Join(os.WriteFile(filepath.Join(p.dir, "adapters.yaml"), []byte(adapters), 0o600), p.writeSettings(slackAccount))
}

// hold is the file whose existence holds the work back.
func (p *play) hold() string { return filepath.Join(p.dir, "hold") }

// start starts the app and waits until it is ready.
func (p *play) start(ctx context.Context) error {
	args := []string{
		"-adapters", filepath.Join(p.dir, "adapters.yaml"), "-settings", p.settings, "-addr", "127.0.0.1:0",
		"-brokers", strings.Join(p.brokers, ","), "-dir", filepath.Join(p.dir, "tables"),
	}
	if p.flags.verbose {
		args = append(args, "-v")
	}
	var err error
	p.app, err = spawn(args, []string{
		"SLACK_TOKEN=" + p.slack.token, "SLACK_SIGNING_SECRET=" + p.slack.secret, gateVariable + "=" + p.hold(),
	}, p.errs)
	if err != nil {
		return err
	}
	p.address, err = p.app.address(ctx)
	return err
}

// direct is a message in a conversation of one person.
func (p *play) direct(ctx context.Context) error {
	p.screen.title("Ana writes to the app on Slack. The work is done by another agent; the result returns to her")
	p.screen.line("Ana", "-> Clean my inbox")
	if err := p.slack.write(ctx, p.address, ana, anasRoom, "", "Clean my inbox"); err != nil {
		return err
	}
	return p.expect(ctx, "Slack "+anasRoom, "Right away", "done: Clean my inbox")
}

// thread is a message in a thread of a channel.
func (p *play) thread(ctx context.Context) error {
	p.screen.title("Ben asks in a thread of a channel")
	p.screen.line("Ben", "-> Check the calendar")
	if err := p.slack.write(ctx, p.address, ben, opsRoom, opsThread, "Check the calendar"); err != nil {
		return err
	}
	return p.expect(ctx, "Slack "+opsRoom+", thread "+opsThread, "done: Check the calendar")
}

// byMail is a mail.
func (p *play) byMail(ctx context.Context) error {
	p.screen.title("Cleo writes a mail. The result is an answer to that mail")
	p.screen.line("Cleo", "-> Where is my order?")
	if err := p.mail.write(ctx, p.smtp, cleo, desk, firstMail, "Order 17", "Where is my order?"); err != nil {
		return err
	}
	l, err := p.inbox.await(ctx, "mail to "+cleo, "Where is my order?")
	if err != nil {
		return err
	}
	if l.answers != firstMail {
		return fmt.Errorf("%w: the mail answers %q", errUnexpected, l.answers)
	}
	p.screen.line("mail to "+cleo, "answers %s", l.answers)
	return nil
}

// killed kills the app while tasks of three conversations are in flight.
func (p *play) killed(ctx context.Context) error {
	p.screen.title("Three tasks are in flight, and the app is killed with SIGKILL")
	if err := os.WriteFile(p.hold(), nil, 0o600); err != nil {
		return err
	}
	if err := errors.Join(
		p.slack.write(ctx, p.address, ana, anasRoom, "", "Book a table"),
		p.slack.write(ctx, p.address, ben, opsRoom, opsThread, "Count the tickets"),
		p.mail.write(ctx, p.smtp, cleo, desk, secondMail, "Invoice 9", "Send the invoice"),
	); err != nil {
		return err
	}
	if err := p.openDelegations(ctx, 3); err != nil {
		return err
	}
	p.app.kill()
	p.screen.line("app", "was killed and starts again")
	if err := os.Remove(p.hold()); err != nil {
		return err
	}
	if err := p.start(ctx); err != nil {
		return err
	}
	for fragment, place := range map[string]string{
		"done: Book a table":      "Slack " + anasRoom,
		"done: Count the tickets": "Slack " + opsRoom + ", thread " + opsThread,
		"Send the invoice":        "mail to " + cleo,
	} {
		if _, err := p.inbox.await(ctx, place, fragment); err != nil {
			return err
		}
	}
	return nil
}

// approval is a question that is answered with a button.
func (p *play) approval(ctx context.Context) error {
	p.screen.title("A payment needs an approval, which is asked for in the same conversation")
	p.screen.line("Ana", "-> Pay 12.50 to mira.")
	if err := p.slack.write(ctx, p.address, ana, anasRoom, "", "Pay 12.50 to mira."); err != nil {
		return err
	}
	question, err := p.inbox.await(ctx, "Slack "+anasRoom, "/approve")
	if err != nil {
		return err
	}
	p.screen.line("Ana", "presses the first button")
	if err := p.slack.press(ctx, p.address, ana, anasRoom, question, 0); err != nil {
		return err
	}
	return p.expect(ctx, "Slack "+anasRoom, "Paid.")
}

// removed takes Slack out of the settings while a task is in flight.
func (p *play) removed(ctx context.Context) error {
	p.screen.title("Slack is taken out of the settings while a task is in flight: nothing is sent elsewhere, the result can be read")
	if err := os.WriteFile(p.hold(), nil, 0o600); err != nil {
		return err
	}
	if err := p.slack.write(ctx, p.address, ana, anasRoom, "", "Water the plants"); err != nil {
		return err
	}
	if err := p.openDelegations(ctx, 1); err != nil {
		return err
	}
	if err := p.writeSettings(""); err != nil {
		return err
	}
	if err := os.Remove(p.hold()); err != nil {
		return err
	}
	if err := p.await(ctx, func(d handoff) bool { return d.Result == "done: Water the plants" }); err != nil {
		return err
	}
	dead, err := p.deadDelivery(ctx)
	if err != nil {
		return err
	}
	p.screen.line("concierge-delivery-dlq", "the delivery to %s is dead: %s", dead.Delivery.Route.Key(), dead.Reason)
	if n := p.inbox.count("done: Water the plants"); n != 0 {
		return fmt.Errorf("%w: the result was sent", errUnexpected)
	}
	return nil
}

// expect waits until the place has got texts with the fragments, and fails if another place has.
func (p *play) expect(ctx context.Context, place string, fragments ...string) error {
	for _, f := range fragments {
		if _, err := p.inbox.await(ctx, place, f); err != nil {
			return err
		}
	}
	return nil
}

// handoff is what the example reads of an entry of the door.
type handoff struct {
	CallbackID string `json:"callback_id"`
	Status     string `json:"status"`
	Result     string `json:"result"`
}

// openDelegations waits until that many delegations are open.
func (p *play) openDelegations(ctx context.Context, want int) error {
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	for {
		open := 0
		all, err := p.delegations(ctx)
		if err != nil {
			return err
		}
		for _, d := range all {
			if d.Status == "open" {
				open++
			}
		}
		if open == want {
			p.screen.line("app", "has %d open delegations", open)
			return nil
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return fmt.Errorf("%w: %d open delegations, want %d: %w", errUnexpected, open, want, context.Cause(ctx))
		}
	}
}

// await waits for a delegation.
func (p *play) await(ctx context.Context, is func(handoff) bool) error {
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	for {
		all, err := p.delegations(ctx)
		if err != nil {
			return err
		}
		for _, d := range all {
			if is(d) {
				p.screen.line("GET /api/delegations", "%s is %s: %s", d.CallbackID, d.Status, d.Result)
				return nil
			}
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return fmt.Errorf("%w: no such delegation: %w", errUnexpected, context.Cause(ctx))
		}
	}
}

// origins are those of the conversations of the play.
func origins() []topics.Origin {
	return []topics.Origin{
		{Channel: "slack", Account: "main", Recipient: anasRoom},
		{Channel: "slack", Account: "main", Recipient: opsRoom, Thread: opsThread},
		{Channel: "email", Account: "desk", Recipient: cleo, Thread: firstMail},
		{Channel: "email", Account: "desk", Recipient: cleo, Thread: secondMail},
	}
}

// delegations returns the delegations of all conversations.
func (p *play) delegations(ctx context.Context) (all []handoff, err error) {
	for _, o := range origins() {
		list, err := p.delegationsOf(ctx, o.Session(concierge))
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	return all, nil
}

// delegationsOf returns the delegations of a session, those that have ended with their results.
func (p *play) delegationsOf(ctx context.Context, session string) ([]handoff, error) {
	var list struct {
		Delegations []handoff `json:"delegations"`
	}
	if err := p.get(ctx, "/api/delegations?session_id="+session, &list); err != nil {
		return nil, err
	}
	for n, d := range list.Delegations {
		if d.Status == "open" {
			continue
		}
		address := "/api/delegations/" + url.PathEscape(d.CallbackID) + "?session_id=" + session
		if err := p.get(ctx, address, &list.Delegations[n]); err != nil {
			return nil, err
		}
	}
	return list.Delegations, nil
}

// get reads JSON from the door of delegations.
func (p *play) get(ctx context.Context, path string, to any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.address+path, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%w: GET %s: status %d", errUnexpected, path, response.StatusCode)
	}
	return json.UnmarshalRead(response.Body, to)
}
