package email

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"
	"go.uber.org/zap"
)

// receive receives unseen messages, at most a batch of them. more reports that there are others.
func (m *Mailbox) receive(ctx context.Context, s *imapSession) (more bool, err error) {
	var found *imap.SearchData
	err = s.ask("UID SEARCH", func() (err error) {
		found, err = s.client.UIDSearch(&imap.SearchCriteria{NotFlag: []imap.Flag{imap.FlagSeen, imap.FlagDeleted}}, nil).Wait()
		return err
	})
	if err != nil {
		return false, err
	}
	all, _ := found.All.(imap.UIDSet)
	uids, more := m.postponed.next(all, batch, m.config.Clock.Now())
	for _, uid := range uids {
		if err := m.take(ctx, s, uid); err != nil && (!m.postpone(ctx, uid, err) || s.conn.failure() != nil) {
			return false, err
		}
	}
	return more, nil
}

// errFetch is wrapped by the error of a command that reads a message.
var errFetch = errors.New("the mail cannot be read")

// postpone reports whether a message could not be read and is tried again later. A lost connection is the message's fault only if it
// is lost twice.
func (m *Mailbox) postpone(ctx context.Context, uid imap.UID, err error) bool {
	var refused *imap.Error
	switch {
	case !errors.Is(err, errFetch) || ctx.Err() != nil:
		return false
	case errors.Is(err, errUnparsed), errors.Is(err, errAnswerTooLong), errors.As(err, &refused), m.postponed.lost == uid:
	default:
		m.postponed.lost = uid
		return false
	}
	m.backoff.Reset()
	wait := m.postponed.add(uid, m.config.Clock.Now())
	m.config.Logger.Warn("a mail cannot be read; it stays unseen, later mail is received before it", append(imapReason(ctx, err),
		zap.String("account", m.config.Account), zap.Uint32("uid", uint32(uid)), zap.Duration("wait", wait))...)
	return true
}

// fetch returns the size and the text of a message, as far as options asks for them. found is false if another client has removed it.
func fetch(s *imapSession, uid imap.UID, options *imap.FetchOptions) (size int64, text []byte, found bool, err error) {
	err = s.ask("UID FETCH", func() error {
		answer := s.client.Fetch(imap.UIDSetNum(uid), options)
		for message := answer.Next(); message != nil; message = answer.Next() {
			found = true
			for item := message.Next(); item != nil; item = message.Next() {
				switch item := item.(type) {
				case imapclient.FetchItemDataRFC822Size:
					size = item.Size
				case imapclient.FetchItemDataBodySection:
					if text, err = readLiteral(s, item.Literal); err != nil {
						// The library's reader goes on by itself after the error: nothing may be read beside it.
						<-s.client.Closed()
						return err
					}
				}
			}
		}
		return answer.Close()
	})
	if err != nil {
		return 0, nil, false, fmt.Errorf("%w: %w", errFetch, err)
	}
	return size, text, found, nil
}

// readLiteral returns a literal that is not much larger than a message may be. A larger one ends the connection before it is read.
func readLiteral(s *imapSession, l imap.LiteralReader) ([]byte, error) {
	if l == nil {
		return nil, nil
	}
	if l.Size() > s.conn.limit {
		s.conn.fail(errAnswerTooLong)
	}
	return io.ReadAll(l)
}

// take receives one message and marks it as seen.
func (m *Mailbox) take(ctx context.Context, s *imapSession, uid imap.UID) error {
	size, _, found, err := fetch(s, uid, &imap.FetchOptions{UID: true, RFC822Size: true})
	if err != nil || !found {
		return err
	}
	if size > m.accept.MaxMessage {
		m.log("mail was refused", "it is too large", uid)
		return seen(s, uid)
	}
	// Not a part of the body: servers write the answers to partial fetches in ways that cannot be parsed. The connection bounds it.
	whole := &imap.FetchItemBodySection{Peek: true}
	_, text, found, err := fetch(s, uid, &imap.FetchOptions{UID: true, BodySection: []*imap.FetchItemBodySection{whole}})
	if err != nil || !found {
		return err
	}
	switch v := m.accept.judge(text); {
	case v.dropped != "":
		m.log("mail was dropped", v.dropped, uid)
	case v.refused != "":
		m.log("mail was refused", v.refused, uid)
	default:
		receiving, cancel := context.WithTimeout(ctx, m.config.ReceiveTimeout)
		err := m.to.Receive(receiving, v.in)
		cancel()
		if err != nil {
			return fmt.Errorf("%w: %w", errReceive, err)
		}
	}
	return seen(s, uid)
}

func seen(s *imapSession, uid imap.UID) error {
	return s.ask("UID STORE", func() error {
		flags := &imap.StoreFlags{Op: imap.StoreFlagsAdd, Silent: true, Flags: []imap.Flag{imap.FlagSeen}}
		return s.client.Store(imap.UIDSetNum(uid), flags, nil).Close()
	})
}

func (m *Mailbox) log(text, reason string, uid imap.UID) {
	m.config.Logger.Info(text, zap.String("account", m.config.Account), zap.String("reason", strings.TrimSpace(reason)),
		zap.Uint32("uid", uint32(uid)))
}
