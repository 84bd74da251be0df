package email

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/internal/bounds"
	_ "github.com/turntable-streams/turntable/internal/testing/rapidseed"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform/platformtest"
	"github.com/turntable-streams/turntable/topics"
)

func judged(t *testing.T, mail string, change ...func(*Acceptance)) verdict {
	t.Helper()
	return checked(t, change...).judge([]byte(mail))
}

func textOf(t *testing.T, mail string) string {
	t.Helper()
	v := judged(t, mail)
	require.Empty(t, v.dropped+v.refused)
	return v.in.Text
}

func TestMailBecomesAnEventWithTheOriginThatItsAnswerNeeds(t *testing.T) {
	v := judged(t, mailOf("Please pay it.\r\n", "From", "Ada L <Ada@Example.ORG>", "Date", "Mon, 21 Sep 2026 12:00:00 +0000"))
	require.Empty(t, v.dropped+v.refused)
	require.Equal(t, topics.Origin{
		Channel: "email", Account: "main", Recipient: "Ada@example.org", Thread: "<m1@example.org>", MessageID: "<m1@example.org>",
		User: "ada@example.org", UserName: "Ada L", Adapter: topics.Raw(`{"subject":"Invoice","references":["<m1@example.org>"]}`),
		Proof: topics.ProofNone, // a From address alone proves nothing
	}, v.in.Origin)
	require.Equal(t, "Subject: Invoice\n\nPlease pay it.", v.in.Text)
	require.NotEmpty(t, v.in.Event)
	require.EqualValues(t, 1789992000, v.in.At.Unix())
}

func TestThreadIsTheFirstMailOfTheConversation(t *testing.T) {
	for name, c := range map[string]struct {
		headers []string
		want    string
	}{
		"first mail":        {nil, "<m1@example.org>"},
		"references":        {[]string{"References", "<root@example.org>\r\n <a@example.com>", "In-Reply-To", "<a@example.com>"}, "<root@example.org>"},
		"only in-reply-to":  {[]string{"In-Reply-To", "<a@example.com>"}, "<a@example.com>"},
		"unusable ones":     {[]string{"References", "<> <with space@x> <root@example.org>"}, "<root@example.org>"},
		"too long to store": {[]string{"References", "<" + strings.Repeat("x", maxMessageID) + "@x> <root@example.org>"}, "<root@example.org>"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, originOf(t, mailOf("hi", c.headers...)).Thread)
		})
	}
}

func TestMailWithoutAnIDIsRecognisedByItsContent(t *testing.T) {
	one, same, other := judged(t, mailOf("a", "Message-ID", "")), judged(t, mailOf("a", "Message-ID", "")), judged(t, mailOf("b", "Message-ID", ""))
	require.Equal(t, one.in.Event, same.in.Event)
	require.NotEqual(t, one.in.Event, other.in.Event)
	require.Empty(t, one.in.Origin.MessageID)
	require.NoError(t, one.in.Origin.Check())
}

func TestPersonCannotTakeTheEventOfAnother(t *testing.T) {
	ada, bob := judged(t, mailOf("a")), judged(t, mailOf("a", "From", "bob@example.org"))
	require.NotEqual(t, ada.in.Event, bob.in.Event)
	require.False(t, ada.in.Origin.SamePlace(bob.in.Origin), "the same Message-ID is not the same conversation")
}

func TestReplyToIsUsedForAllowedSendersOnlyAndNeverEntersTheirConversation(t *testing.T) {
	require.Equal(t, "ada@example.org", originOf(t, mailOf("a", "Reply-To", "eve@evil.test")).Recipient)
	require.Equal(t, "ada@example.org", originOf(t, mailOf("a", "Reply-To", "agent@example.com")).Recipient)
	require.Equal(t, "ada@example.org", originOf(t, mailOf("a", "Reply-To", "bob@example.org, eve@example.org")).Recipient)
	other := originOf(t, mailOf("a", "Reply-To", "bob@example.org"))
	require.Equal(t, "bob@example.org", other.Recipient)
	require.Equal(t, "ada@example.org", other.User)
	require.False(t, other.SamePlace(originOf(t, mailOf("a", "From", "bob@example.org"))))
}

// Otherwise anyone could have the agent write to anyone.
func TestReplyToOfAnySenderStaysInItsDomain(t *testing.T) {
	any := func(a *Acceptance) { a.AnySender, a.Senders = true, []string{"@desk.example"} }
	for replyTo, want := range map[string]string{
		"victim@example.com": "eve@evil.test", "other@evil.test": "other@evil.test", "x@sub.evil.test": "eve@evil.test",
		"help@desk.example": "help@desk.example",
	} {
		v := judged(t, mailOf("a", "From", "eve@evil.test", "Reply-To", replyTo), any)
		require.Empty(t, v.refused)
		require.Equal(t, want, v.in.Origin.Recipient, replyTo)
	}
}

func TestSendersAreComparedAsAWhole(t *testing.T) {
	for from, allowed := range map[string]bool{
		"ada@example.org": true, "ADA@EXAMPLE.ORG": true, "ada@example.net": true, "Ada <ada@example.net>": true,
		"bob@example.net": false, "ada@evil-example.org": false, "ada@example.org.evil.test": false, "ada@sub.example.org": false,
		"xada@example.net": false, "ada@example.net.evil.test": false, `"ada@example.net" <eve@evil.test>`: false,
		`"ada@example.org"@evil.test`: false, `"x"@example.org`: true, "ada@example.net@evil.test": false,
		"ada@exämple.org": false, "аda@example.net": false, "ada@example.org, eve@evil.test": false,
		"eve@evil.test <ada@example.org>": false, "": false, "group: ada@example.org;": true,
		"<ada@example.org>\r\nFrom: eve@evil.test": false,
	} {
		v := judged(t, mailOf("hi", "From", from))
		require.Equal(t, allowed, v.refused == "", "%q: %s", from, v.refused)
		if allowed {
			require.Empty(t, v.dropped)
		}
	}
	require.Empty(t, judged(t, mailOf("hi", "From", "eve@evil.test"), func(a *Acceptance) { a.AnySender, a.Senders = true, nil }).refused)
}

func TestAutomaticMailIsDropped(t *testing.T) {
	own := answerID("delivery/0", "agent@example.com")
	for name, headers := range map[string][]string{
		"auto-replied":     {"Auto-Submitted", "auto-replied (vacation)"},
		"auto-generated":   {"Auto-Submitted", "auto-generated; x=y"},
		"bulk":             {"Precedence", "Bulk"},
		"list":             {"Precedence", "list"},
		"junk":             {"Precedence", "junk"},
		"mailing list":     {"List-Id", "<all.example.org>"},
		"report":           {"Content-Type", "multipart/report; boundary=b"},
		"mailer daemon":    {"From", "MAILER-DAEMON@example.org"},
		"no sender":        {"Return-Path", "<>"},
		"own address":      {"From", "Agent@Example.com"},
		"own answer":       {"Message-ID", own},
		"loop":             {headerLoop, "agent@example.com"},
		"other agent":      {headerLoop, "x@example.org"},
		"own case changed": {"Message-ID", strings.Replace(own, "example.com", "EXAMPLE.com", 1)},
	} {
		require.NotEmpty(t, judged(t, mailOf("hi", headers...)).dropped, name)
	}
	for name, headers := range map[string][]string{
		"said to be of a person": {"Auto-Submitted", "No"},
		"reply to an answer":     {"In-Reply-To", own, "References", "<r@x> " + own},
		"first class":            {"Precedence", "first-class"},
		"similar ID":             {"Message-ID", "<turntable.1@example.com>"},
	} {
		require.Empty(t, judged(t, mailOf("hi", headers...)).dropped, name)
	}
}

func TestAnswersOfThisPackageAreDroppedWhenTheyComeBack(t *testing.T) {
	s := submit(t)
	_, err := sender25(t, s).Send(t.Context(), chunkTo(originOf(t, mailOf("hi")), "hello"))
	require.NoError(t, err)
	back := strings.Replace(s.received()[0], "agent@example.com", "ada@example.org", 1) // a forwarder changed From
	require.NotEmpty(t, judged(t, back).dropped)
}

func TestSenderMustBeAuthenticatedIfThatIsRequired(t *testing.T) {
	required := func(a *Acceptance) { a.AuthServID = "mx.example.com" }
	const pass = "mx.example.com; spf=fail; dmarc=pass (p=none dis=none) header.from=example.org"
	v := judged(t, mailOf("hi", "Authentication-Results", pass), required)
	require.Empty(t, v.refused)
	require.Equal(t, topics.ProofCode, v.in.Origin.Proof, "the server vouches for the domain")
	require.Empty(t, judged(t, mailOf("hi", "Authentication-Results", "other.test; dmarc=fail\r\nAuthentication-Results: "+pass), required).refused)
	for name, value := range map[string]string{
		"none":              "",
		"failed":            "mx.example.com; dmarc=fail header.from=example.org",
		"other server":      "mx.evil.test; dmarc=pass header.from=example.org",
		"longer name":       "mx.example.com.evil.test; dmarc=pass header.from=example.org",
		"other domain":      "mx.example.com; dmarc=pass header.from=evil.test",
		"no domain":         "mx.example.com; dmarc=pass",
		"two domains":       "mx.example.com; dmarc=pass header.from=evil.test header.from=example.org",
		"in a comment":      "mx.example.com; dmarc=fail (x; dmarc=pass header.from=example.org)",
		"only in a comment": "mx.example.com; spf=fail (; dmarc=pass header.from=example.org)",
		"in a string":       `mx.example.com; spf=pass smtp.mailfrom="x; dmarc=pass header.from=example.org"`,
		"two results":       "mx.example.com; dmarc=pass header.from=example.org; dmarc=fail header.from=example.org",
		"other method":      "mx.example.com; xdmarc=pass header.from=example.org",
		"other result":      "mx.example.com; dmarc=passed header.from=example.org",
		"open comment":      "mx.example.com; dmarc=pass (header.from=example.org",
		"open string":       `mx.example.com; dmarc=pass header.from="example.org`,
		"forged below":      "mx.example.com; dmarc=fail header.from=example.org\r\nAuthentication-Results: " + pass,
		"unclear above":     "(\r\nAuthentication-Results: " + pass,
	} {
		require.NotEmpty(t, judged(t, mailOf("hi", "Authentication-Results", value), required).refused, name)
	}
}

func TestTextOfMail(t *testing.T) {
	const multi = "multipart/mixed; boundary=b"
	part := func(headers, body string) string { return "--b\r\n" + headers + "\r\n\r\n" + body + "\r\n" }
	for name, c := range map[string]struct{ mail, want string }{
		"command":                   {mailOf("/new", "Subject", "x"), "/new"},
		"subject":                   {mailOf("", "Subject", "Only this"), "Only this"},
		"encoded":                   {mailOf("Gr=C3=BC=C3=9Fe", "Content-Transfer-Encoding", "quoted-printable", "Subject", "=?utf-8?q?=C3=BC?="), "Subject: ü\n\nGrüße"},
		"charset":                   {mailOf("Gr\xfc\xdfe", "Content-Type", "text/plain; charset=iso-8859-1", "Subject", ""), "Grüße"},
		"unknown":                   {mailOf("a\xff", "Content-Type", "text/plain; charset=nonsense", "Subject", ""), "a\uFFFD"},
		"control":                   {mailOf("a\x00\x1b[2Jb\r\nc\td", "Subject", ""), "a[2Jb\nc\td"},
		"plain":                     {mailOf("--b\r\nContent-Type: text/html\r\n\r\n<b>html</b>\r\n--b\r\nContent-Type: text/plain\r\n\r\nplain\r\n--b--", "Content-Type", "multipart/alternative; boundary=b", "Subject", ""), "plain"},
		"html":                      {mailOf("<html><head><title>t</title><style>p{}</style></head><body><p>One <b>two</b>&amp;</p><script>x()</script><div>three</div></body>", "Content-Type", "text/html", "Subject", ""), "One two&\n\nthree"},
		"attached":                  {mailOf(part("Content-Type: text/plain", "see")+part("Content-Type: application/pdf; name=x.pdf\r\nContent-Disposition: attachment; filename=\"a [b].pdf\"", "%PDF")+"--b--", "Content-Type", multi, "Subject", ""), "see\n\n[attachment: a (b).pdf]"},
		"attached text is not read": {mailOf(part("Content-Type: text/plain\r\nContent-Disposition: attachment; filename=s.txt", "secret")+"--b--", "Content-Type", multi, "Subject", ""), "[attachment: s.txt]"},
		"attached mail is not read": {mailOf(part("Content-Type: message/rfc822", mailOf("inner"))+"--b--", "Content-Type", multi, "Subject", ""), "[attachment: without a name]"},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, textOf(t, c.mail)) })
	}
}

func TestQuoteAtTheEndOfAReplyIsRemoved(t *testing.T) {
	reply := func(body string) string {
		return textOf(t, mailOf(strings.ReplaceAll(body, "\n", "\r\n"), "In-Reply-To", "<a@example.com>"))
	}
	require.Equal(t, "Yes", reply("Yes\n\nOn Monday, Agent wrote:\n> Shall I?\n>\n> Bye\n"))
	require.Equal(t, "Yes", reply("Yes\n\nOn Mon, 21 Sep 2026 at 12:00, Agent\n<agent@example.com> wrote:\n\n> Shall I?"))
	require.Equal(t, "Ja", reply("Ja\n\nAm 21.09.2026 schrieb Agent:\n> Soll ich?"))
	require.Equal(t, "Yes:", reply("Yes:\n> quoted"), "a line of the person stays")
	require.Equal(t, "> Shall I?\nYes", reply("> Shall I?\nYes"), "an answer below its quote stays with it")
	require.Equal(t, "> only this", reply("> only this"))
	require.Equal(t, "> /approve", textOf(t, mailOf("> /approve", "In-Reply-To", "<a@x>")), "a quoted command is none")
	require.Contains(t, textOf(t, mailOf("a\r\n> b")), "> b", "a first mail has no quote")
	html := mailOf("<div>Yes</div><div>On Monday, Agent wrote:</div><blockquote><div>Shall I?</div></blockquote>", "Content-Type", "text/html", "References", "<a@x>")
	require.Equal(t, "Yes", textOf(t, html))
}

func TestHostileStructureIsRefused(t *testing.T) {
	var deep, many strings.Builder
	for i := range maxDepth + 2 {
		b := "b" + strings.Repeat("x", i)
		deep.WriteString("Content-Type: multipart/mixed; boundary=" + b + "\r\n\r\n--" + b + "\r\n")
	}
	for range maxParts + 1 {
		many.WriteString("--b\r\nContent-Type: text/plain\r\n\r\nx\r\n")
	}
	head := "From: ada@example.org\r\n"
	require.Equal(t, errStructure.Error(), judged(t, head+deep.String()).refused)
	require.Equal(t, errStructure.Error(), judged(t, head+"Content-Type: multipart/mixed; boundary=b\r\n\r\n"+many.String()+"--b--").refused)
	require.True(t, judged(t, mailOf(strings.Repeat("x", 101)), func(a *Acceptance) { a.MaxText = 100 }).tooLarge)
	require.True(t, judged(t, mailOf("x"), func(a *Acceptance) { a.MaxMessage = 10 }).tooLarge)
	require.NotEmpty(t, judged(t, mailOf("x", "X-Long", strings.Repeat("y ", maxHeader))).refused)
	require.NotEmpty(t, judged(t, "").refused)
	require.NotEmpty(t, judged(t, "\x00\xff\r\n\r\n").refused)
}

func TestAnyBytesHaveAVerdictAndOriginsAreValid(t *testing.T) {
	a := checked(t, func(a *Acceptance) { a.AnySender, a.Senders = true, nil })
	pieces := rapid.SampledFrom([]string{
		"From: ada@example.org\r\n", "From: ", "Subject: x\r\n", "Message-ID: <a@b>\r\n", "References: <a@b> <c@d>\r\n", "\r\n", "\n", "\r",
		"Content-Type: multipart/mixed; boundary=b\r\n", "Content-Type: text/html\r\n", "--b\r\n", "--b--\r\n", "<blockquote>", "<script>",
		"> q\r\n", "=?utf-8?b?//8=?=", "\x00", "\xff", ": ", "Reply-To: bob@example.org\r\n", "Content-Transfer-Encoding: base64\r\n", "text",
	})
	rapid.Check(t, func(t *rapid.T) {
		mail := strings.Join(rapid.SliceOfN(pieces, 0, 30).Draw(t, "pieces"), "")
		v := a.judge([]byte(mail))
		again := a.judge([]byte(mail))
		require.Equal(t, v, again)
		if v.dropped == "" && v.refused == "" {
			require.NoError(t, v.in.Origin.Check())
			require.NotEmpty(t, v.in.Event)
			require.NotEmpty(t, v.in.Text)
			require.NotContains(t, v.in.Text, "\x00")
		}
	})
}

func TestChainIsBoundedAndKeepsTheFirstAndTheLast(t *testing.T) {
	var refs []string
	for i := range 100 {
		refs = append(refs, "<"+strings.Repeat("x", i+1)+"@example.org>")
	}
	got := chain(refs, "<last@example.org>")
	require.LessOrEqual(t, len(got), maxReferences)
	require.Equal(t, refs[0], got[0])
	require.Equal(t, "<last@example.org>", got[len(got)-1])
	require.LessOrEqual(t, len(strings.Join(got, "")), maxReferenceBytes)
}

func TestConfigurationIsChecked(t *testing.T) {
	for name, change := range map[string]func(*Acceptance){
		"account": func(a *Acceptance) { a.Account = "" }, "addresses": func(a *Acceptance) { a.Addresses = nil },
		"address": func(a *Acceptance) { a.Addresses = []string{"x"} }, "no senders": func(a *Acceptance) { a.Senders = nil },
		"sender": func(a *Acceptance) { a.Senders = []string{"example.org"} }, "server": func(a *Acceptance) { a.AuthServID = "a b" },
		"limit": func(a *Acceptance) { a.MaxText = -1 },
	} {
		var check bounds.Check
		accepting(change).check(&check)
		err := check.Err(ErrConfig)
		require.ErrorIs(t, err, ErrConfig, name)
	}
	good := Config{From: "agent@example.com", Host: "127.0.0.1", Security: NoTLS}
	for name, err := range platformtest.Refused(t, New, good, map[string]func(*Config){
		"from": func(c *Config) { c.From = "a@b\r\n" }, "host": func(c *Config) { c.Host = "" }, "port": func(c *Config) { c.Port = 70000 },
		"plain text elsewhere": func(c *Config) { c.Host = "mail.example.com" }, "security": func(c *Config) { c.Security = 9 },
		"password":            func(c *Config) { c.Security, c.Username = StartTLS, "u" },
		"login in plain text": func(c *Config) { c.Username, c.Password = "u", platformtest.Secret }, "timeout": func(c *Config) { c.Timeout = -1 },
	}) {
		require.ErrorIs(t, err, ErrConfig, name)
	}
	r := &inbox{}
	open := func(c ServerConfig) (*Server, error) { return NewServer(c, r) }
	server := ServerConfig{Acceptance: accepting(), Domain: "mx.example.com"}
	for name, err := range platformtest.Refused(t, open, server, map[string]func(*ServerConfig){
		"domain": func(c *ServerConfig) { c.Domain = "" }, "tls": func(c *ServerConfig) { c.RequireTLS = true },
		"login": func(c *ServerConfig) { c.Authenticate = func(string, string) bool { return true } },
		"limit": func(c *ServerConfig) { c.MaxRecipients = -1 }, "timeout": func(c *ServerConfig) { c.Timeout = -1 },
	}) {
		require.ErrorIs(t, err, ErrConfig, name)
	}
	_, err := NewServer(server, nil)
	require.ErrorIs(t, err, ErrConfig)
	_, err = NewMailbox(MailboxConfig{Acceptance: accepting(), Host: "mail.example.com"}, r)
	require.ErrorIs(t, err, ErrConfig)
}
