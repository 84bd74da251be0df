// Package email is the channel "email": it receives mail as an SMTP server or from an IMAP mailbox, and answers by SMTP.
//
//	Server    a mail server passes mail on to it (RFC 5321)            -> adapter.Receiver
//	Mailbox   reads the unseen messages of an IMAP mailbox (RFC 3501)  -> adapter.Receiver
//	Adapter   sends answers to a submission server (RFC 6409)
//
// # Conversations
//
// A conversation is a mail thread of one person. Its ID is the Message-ID of the thread's first mail: the first one of References,
// else that of In-Reply-To, else the mail's own (RFC 5322, section 3.6.4). Everything that an answer needs is in the origin of the
// mail that it answers: nothing is remembered for an address, so two conversations with one person stay apart, and any process can
// answer. The Message-ID of an answer is derived from the key of its chunk. If the same answer is sent twice, because a connection
// was lost after the end of the mail, mail programs and servers that deduplicate recognise the second one.
//
// # Who may write
//
// Senders is compared with the address of the header From, as a whole or by its domain. Anyone can put any address there: a From
// address alone proves nothing. This package does not check SPF (RFC 7208), DKIM (RFC 6376) or DMARC (RFC 7489), which is the task
// of the mail server in front of it. Set Acceptance.AuthServID to accept only mail for which that server reports dmarc=pass in the
// header Authentication-Results (RFC 8601). Three conditions must hold, or the header can be forged too: that server removes
// such headers with its own name from incoming mail, it adds its own above all others, and no one else can reach the port of Server.
// Without AuthServID, treat the sender as unverified, and give no one rights because of their address.
//
// A mail decides about a request for approval only with AuthServID, and only with the code that is in the question: dmarc=pass proves
// the domain of the sender, not the person. Without AuthServID the question says where to decide instead, and /approve and /deny are
// answered and decide nothing.
//
// # What is dropped
//
// Automatic mail is taken and dropped, so that two programs do not write to each other without end (RFC 3834): mail with
// Auto-Submitted other than "no", with Precedence bulk, list or junk, with a List-Id, reports such as bounces (an empty envelope
// sender, multipart/report), mail from an address of the account, and answers of this package that come back. Answers have
// "Auto-Submitted: auto-replied".
//
// # Text
//
// The text is the first text/plain part, else the text of the first text/html part (RFC 2045, RFC 2046). Attachments are named in
// brackets and not read. Quoted lines at the end of a reply are removed, with the line that introduces them; quotes in other places
// and those without ">" are kept, because removing a sentence of the person is worse than keeping one of the agent. The subject of
// a mail that begins a thread precedes its text, unless the text is a command.
//
// # Failures
//
// A reply of 4xx, a lost connection and a refused login are retried. A reply of 5xx to the sender, the recipient or the mail is
// final (RFC 5321, section 4.2.1).
package email
