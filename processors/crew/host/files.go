package host

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// maxFile is the size of the largest file that is read or written for an agent, in bytes.
const maxFile = 8 << 20

// files are the files of an agent's directory. Nothing outside of it is reached, also not by symbolic links.
type files struct {
	root *os.Root
	dir  string // its path without symbolic links
	also string // its path as the agent was given it
}

func openFiles(dir, also string) (*files, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &files{root: root, dir: dir, also: filepath.Clean(also)}, nil
}

// Close implements io.Closer.
func (f *files) Close() error { return f.root.Close() }

// name is a path inside the directory. ACP's paths are absolute.
func (f *files) name(path string) (string, error) {
	if filepath.IsAbs(path) {
		for _, dir := range []string{f.dir, f.also} {
			if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
				return rel, nil
			}
		}
	}
	return "", &rpcError{codeInvalidParams, "the path is not an absolute path inside the session's directory"}
}

type readRequest struct {
	Path  string `json:"path"`
	Line  *int   `json:"line,omitzero"`
	Limit *int   `json:"limit,omitzero"`
}

type writeRequest struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

// shown returns the arguments that a person sees. The digest tells rows of older builds that they say everything.
func (q writeRequest) shown() any {
	return map[string]any{
		"path": q.Path, "content": q.Content, "bytes": len(q.Content), "content_sha256": digestOf([]byte(q.Content)),
	}
}

func (r *run) readFile(_ context.Context, q readRequest) (any, error) {
	name, err := r.files.name(q.Path)
	if err != nil {
		return nil, err
	}
	f, err := r.files.open(name, os.O_RDONLY)
	if err != nil {
		return nil, fileError(err)
	}
	defer func() { _ = f.Close() }()
	text, err := readLines(f, q.Line, q.Limit)
	if err != nil {
		return nil, err
	}
	return map[string]string{"content": text}, nil
}

// open opens a regular file. Others are refused, because their opening, reading or writing can block or have an effect. The file
// is judged before it is opened, and again afterwards: another may have taken its place.
func (f *files) open(name string, flag int) (*os.File, error) {
	at, err := f.root.Stat(name)
	if err == nil && !at.Mode().IsRegular() {
		return nil, errNotRegular
	}
	if err != nil && (flag&os.O_CREATE == 0 || !errors.Is(err, fs.ErrNotExist)) {
		return nil, err
	}
	opened, err := f.root.OpenFile(name, flag|openAtOnce, 0o644)
	if err != nil {
		return nil, err
	}
	if at, err = opened.Stat(); err == nil && !at.Mode().IsRegular() {
		err = errNotRegular
	}
	if err != nil {
		_ = opened.Close()
		return nil, err
	}
	return opened, nil
}

var errNotRegular = errors.New("not a regular file")

// readLines reads from a line on, the first is 1, at most limit lines.
func readLines(from io.Reader, line, limit *int) (string, error) {
	first, end := 1, math.MaxInt
	if line != nil {
		first = max(*line, 1)
	}
	if limit != nil && *limit < math.MaxInt-first {
		end = first + max(*limit, 0)
	}
	var text strings.Builder
	lines := bufio.NewReaderSize(from, 64<<10)
reading:
	for at := 1; at < end; {
		part, err := lines.ReadSlice('\n')
		if at >= first {
			if text.Len()+len(part) > maxFile {
				return "", &rpcError{codeInvalidParams, "the text is larger than 8 MiB; ask for fewer lines"}
			}
			text.Write(part)
		}
		switch {
		case err == nil:
			at++
		case errors.Is(err, io.EOF):
			break reading
		case !errors.Is(err, bufio.ErrBufferFull):
			return "", fileError(err)
		}
	}
	if !utf8.ValidString(text.String()) {
		return "", &rpcError{codeInvalidParams, "not a text in UTF-8"}
	}
	return text.String(), nil
}

func (r *run) writeFile(_ context.Context, q writeRequest) (any, error) {
	name, err := r.files.name(q.Path)
	if err != nil {
		return nil, err
	}
	if len(q.Content) > maxFile {
		return nil, &rpcError{codeInvalidParams, "the text is larger than 8 MiB"}
	}
	if err := r.files.root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return nil, fileError(err)
	}
	f, err := r.files.open(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return nil, fileError(err)
	}
	_, err = f.WriteString(q.Content)
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return nil, fileError(err)
	}
	return map[string]any{}, nil
}

// fileError says why without the path, which the agent knows.
func fileError(err error) error {
	var at *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &rpcError{codeNoSuchResource, "no such file"}
	case errors.As(err, &at):
		return &rpcError{codeInternal, at.Err.Error()}
	}
	return &rpcError{codeInternal, err.Error()}
}
