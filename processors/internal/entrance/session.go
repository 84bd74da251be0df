package entrance

import (
	"errors"
	"unicode"

	"github.com/turntable-streams/turntable/processors"
)

var errSessionCharacters = errors.New("session id contains control or formatting characters")

// CheckSession is processors.CheckSession for the session IDs of requests. It also rejects control characters, line
// separators, and characters that change the direction of text or are invisible: they can make a log or a terminal show
// something else. The Kafka side accepts such IDs from other producers. The error does not quote the ID.
func CheckSession(id string) error {
	if err := processors.CheckSession(id); err != nil {
		return err
	}
	for _, c := range id {
		if unicode.In(c, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) {
			return errSessionCharacters
		}
	}
	return nil
}
