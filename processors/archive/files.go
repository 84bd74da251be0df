package archive

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/twmb/franz-go/pkg/kgo"
)

// The files of a backup. plan.json is written first, complete.json last: a directory without it is no backup.
const (
	planFile     = "plan.json"
	completeFile = "complete.json"
	suffix       = ".records"
)

// complete is the end of a backup: the plan that it is of, and the SHA-256 of each file of records.
type complete struct {
	Plan  string            `json:"plan"`
	Files map[string]string `json:"files"`
}

// directory is the directory of a backup.
type directory struct {
	path string
	plan *plan
	complete
}

func (d *directory) file(topic string, partition int) string {
	return filepath.Join("topics", topic, strconv.Itoa(partition)+suffix)
}

// open reads what a directory says about its backup. d.plan is nil if none has begun, d.Files is nil if it is not complete.
func open(path string) (*directory, error) {
	d := &directory{path: path}
	var p plan
	switch err := d.load(planFile, &p); {
	case errors.Is(err, os.ErrNotExist):
		return d, nil
	case err != nil:
		return nil, err
	}
	d.plan = &p
	switch err := d.load(completeFile, &d.complete); {
	case errors.Is(err, os.ErrNotExist):
		return d, nil
	case err != nil:
		return nil, err
	case d.Plan != p.id():
		return nil, fmt.Errorf("%w: %s and %s in %s are not of one backup; use another backup", ErrDirectory, planFile, completeFile, path)
	}
	return d, nil
}

func (d *directory) load(name string, into any) error {
	raw, err := os.ReadFile(filepath.Join(d.path, name))
	if err == nil {
		if err = json.Unmarshal(raw, into); err != nil {
			err = fmt.Errorf("%w: %s in %s is damaged (%w); use another backup", ErrDirectory, name, d.path, err)
		}
	}
	return err
}

// save writes a file as JSON.
func (d *directory) save(name string, of any) error {
	raw, err := json.Marshal(of, json.Deterministic(true), jsontext.WithIndent("\t"))
	if err != nil {
		return err
	}
	return d.write(name, func(w io.Writer) error {
		_, err := w.Write(raw)
		return err
	})
}

// write makes a file that is there with all its content or not at all, also after a crash of the machine.
func (d *directory) write(name string, content func(io.Writer) error) (err error) {
	path := filepath.Join(d.path, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	f, err := os.OpenFile(path+".part", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600) // records are prompts of people
	if err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	w := bufio.NewWriterSize(f, 1<<18)
	if err = content(w); err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		if err = os.Rename(path+".part", path); err == nil {
			err = syncDirectory(filepath.Dir(path))
		}
	}
	if err != nil {
		return fmt.Errorf("archive: write %s: %w; run the same command again, which continues", path, err)
	}
	return nil
}

// syncDirectory makes the names of a directory last.
func syncDirectory(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// A file of records is the name of its plan, then for each record its length in four bytes and its bytes, then a length of 0 and the
// SHA-256 of all before. It has no record of another backup, and not a part of its own.
func (d *directory) writeRecords(name string, records func(yield func(*kgo.Record) error) error) (sum string, err error) {
	err = d.write(name, func(to io.Writer) error {
		h := sha256.New()
		w := io.MultiWriter(to, h)
		if _, err := io.WriteString(w, d.plan.id()); err != nil {
			return err
		}
		var frame []byte
		err := records(func(r *kgo.Record) error {
			frame = encode(append(frame[:0], 0, 0, 0, 0), r)
			binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
			_, err := w.Write(frame)
			return err
		})
		if err != nil {
			return err
		}
		if _, err = w.Write(make([]byte, 4)); err != nil {
			return err
		}
		sum = hex.EncodeToString(h.Sum(nil))
		_, err = to.Write(h.Sum(nil))
		return err
	})
	return sum, err
}

// readRecords reads a file of records and returns its checksum.
func (d *directory) readRecords(name string, yield func(*kgo.Record) error) (sum string, err error) {
	f, err := os.Open(filepath.Join(d.path, name))
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrDirectory, err)
	}
	defer func() { _ = f.Close() }() // it was only read
	h := sha256.New()
	from := bufio.NewReaderSize(f, 1<<18)
	if err = d.readFrames(io.TeeReader(from, h), h, from, yield); errors.Is(err, errFrame) {
		err = fmt.Errorf("%w: %s: %w; use another backup", ErrDirectory, f.Name(), err)
	}
	return hex.EncodeToString(h.Sum(nil)), err
}

func (d *directory) readFrames(r io.Reader, h hash.Hash, rest io.Reader, yield func(*kgo.Record) error) error {
	id := make([]byte, len(d.plan.id()))
	if _, err := io.ReadFull(r, id); err != nil || string(id) != d.plan.id() {
		return errFrame
	}
	for {
		var size [4]byte
		if _, err := io.ReadFull(r, size[:]); err != nil {
			return fmt.Errorf("%w: %w", errFrame, err)
		}
		n := binary.BigEndian.Uint32(size[:])
		if n == 0 {
			break
		}
		if n > mostBytes*2 {
			return errFrame
		}
		frame := make([]byte, n)
		if _, err := io.ReadFull(r, frame); err != nil {
			return fmt.Errorf("%w: %w", errFrame, err)
		}
		record, err := decode(frame)
		if err != nil {
			return err
		}
		if err := yield(record); err != nil {
			return err
		}
	}
	sum := make([]byte, sha256.Size)
	if _, err := io.ReadFull(rest, sum); err != nil || string(sum) != string(h.Sum(nil)) {
		return errFrame
	}
	return nil
}

// verify checks all files before anything is written to a cluster.
func (d *directory) verify() error {
	if d.plan == nil || d.Files == nil {
		return fmt.Errorf("%w: %s has no complete backup: run the backup again into it, which continues, or name another one", ErrDirectory, d.path)
	}
	for _, t := range d.plan.Topics {
		for n := range t.Parts {
			name := d.file(t.Name, n)
			sum, err := d.readRecords(name, func(*kgo.Record) error { return nil })
			if err != nil {
				return err
			}
			if sum != d.Files[name] {
				return fmt.Errorf("%w: %s is another file than the backup has written; use another backup", ErrDirectory, filepath.Join(d.path, name))
			}
		}
	}
	return nil
}

// read implements source.
func (d *directory) read(ctx context.Context, topic string, partition int32, from, to int64, yield func(*kgo.Record) error) error {
	_, err := d.readRecords(d.file(topic, int(partition)), func(r *kgo.Record) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case r.Offset < from || r.Offset >= to:
			return nil
		}
		r.Topic, r.Partition = topic, partition
		return yield(r)
	})
	return err
}
