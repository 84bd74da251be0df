package oauthbearer

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

// File reads the token from a file at every call, so that a rotated token is used for the next connection.
type File struct {
	path string
	now  func() time.Time
}

// NewFile returns the source of a token file and reads it once. now is the current time; nil stands for the system clock. An
// expired token is not an error here: the file may be replaced. The error does not contain the path.
func NewFile(path string, now func() time.Time) (*File, error) {
	if now == nil {
		now = time.Now
	}
	f := &File{path: path, now: now}
	_, err := f.read()
	return f, err
}

// Token implements Source.
func (f *File) Token(context.Context) (string, error) {
	token, err := f.read()
	if err != nil {
		return "", fmt.Errorf("oauthbearer: token file: %w", err)
	}
	if at, ok := expiry(token); ok && !f.now().Before(at) {
		return "", fmt.Errorf("oauthbearer: the token of the token file expired at %s; connections are authenticated again when "+
			"the file contains a new one", at.UTC().Format(time.RFC3339))
	}
	return token, nil
}

func (f *File) read() (string, error) {
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
