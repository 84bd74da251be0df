package kafka

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"
)

// fileLimit bounds the size of a token file.
const fileLimit = 64 << 10

// TokenFile reads the token from a file at every call, so that a rotated token is used for the next connection.
type TokenFile struct {
	path string
	now  func() time.Time
}

// NewTokenFile returns the source of a token file and reads it once. now is the current time; nil stands for the system clock. An
// expired token is not an error here: the file may be replaced. The error does not contain the path.
func NewTokenFile(path string, now func() time.Time) (*TokenFile, error) {
	if now == nil {
		now = time.Now
	}
	f := &TokenFile{path: path, now: now}
	_, err := f.read()
	return f, err
}

// Token implements Source.
func (f *TokenFile) Token(context.Context) (string, error) {
	token, err := f.read()
	if err != nil {
		return "", fmt.Errorf("oauthbearer: token file: %w", err)
	}
	if at, ok := tokenExpiry(token); ok && !f.now().Before(at) {
		return "", fmt.Errorf("oauthbearer: the token of the token file expired at %s; connections are authenticated again when "+
			"the file contains a new one", at.UTC().Format(time.RFC3339))
	}
	return token, nil
}

func (f *TokenFile) read() (string, error) {
	file, err := os.Open(f.path)
	if wrapped := new(fs.PathError); errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	if err != nil {
		return "", fmt.Errorf("it cannot be read: %w", err)
	}
	defer file.Close()
	raw, err := io.ReadAll(io.LimitReader(file, fileLimit+1))
	switch {
	case err != nil:
		return "", errors.New("it cannot be read")
	case len(raw) > fileLimit:
		return "", fmt.Errorf("it is longer than %d bytes", fileLimit)
	}
	token := strings.TrimSpace(string(raw))
	return token, checkToken(token)
}
