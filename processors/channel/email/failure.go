package email

import (
	"context"
	"errors"
	"net/textproto"
	"slices"
	"strconv"
	"strings"

	"github.com/wneessen/go-mail"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform"
)

// connecting is the failure of an attempt that ended before the mail. Nothing here is about the mail: a refused login and a
// refused connection are for the operator to mend, and are retried.
func connecting(ctx context.Context, err error) *adapter.Failure {
	var protocol *textproto.Error
	if errors.As(err, &protocol) {
		return &adapter.Failure{Reason: "mail server refused the connection: status " + strconv.Itoa(protocol.Code), Status: protocol.Code}
	}
	if strings.HasSuffix(err.Error(), "target host does not support STARTTLS") { // the library has no error value for it
		return &adapter.Failure{Reason: reasonNoStartTLS}
	}
	return &adapter.Failure{Reason: networkReason(ctx, err)}
}

// reasonNoStartTLS is about servers of both kinds.
const reasonNoStartTLS = "the server offers no STARTTLS"

// sending is the failure of an attempt to send a mail.
func sending(ctx context.Context, err error) *adapter.Failure {
	var failed *mail.SendError
	if !errors.As(err, &failed) || failed.ErrorCode() == 0 {
		if failed != nil && slices.Contains([]mail.SendErrReason{mail.ErrNoUnencoded, mail.ErrGetSender, mail.ErrGetRcpts}, failed.Reason) {
			return &adapter.Failure{Reason: "mail cannot be made", Final: true}
		}
		return &adapter.Failure{Reason: networkReason(ctx, err)}
	}
	f := &adapter.Failure{Reason: "smtp status " + strconv.Itoa(failed.ErrorCode())}
	switch code := failed.ErrorCode(); {
	case code == 530 || code == 534 || code == 535: // a login is missing: the operator's error
	case code/100 == 5:
		f.Final = true
	}
	return f
}

func networkReason(ctx context.Context, err error) string {
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return platform.ReasonInterrupted
	case ctx.Err() != nil:
		return platform.ReasonTimeout
	default:
		return platform.Reason(err)
	}
}
