package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"

	"github.com/turntable-streams/turntable/processors/auth"
)

// runExample starts the instances, plays the steps, and stops the instances.
func runExample(ctx context.Context, s settings, out, errs io.Writer) (err error) {
	ctx, failed := context.WithCancelCause(ctx)
	defer failed(nil)
	dir, err := os.MkdirTemp("", "peers")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	p, err := newPlay(dir, &screen{out: out})
	if err != nil {
		return err
	}
	p.children = &processes{errs: &lockedWriter{to: errs}, verbose: s.verbose, failed: failed}
	defer p.children.stop()
	defer p.client.http.CloseIdleConnections()
	if err := p.all(ctx, s); err != nil {
		return err
	}
	if s.hold {
		p.explain()
		<-ctx.Done()
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause // a child ended
	}
	return nil
}

// all plays all steps within the timeout.
func (p *play) all(ctx context.Context, s settings) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.timeout, fmt.Errorf("not finished within %s", s.timeout))
	defer p.followers.Wait()
	defer cancel()
	err := p.open(ctx, p.hq, p.acme)
	for _, step := range p.steps() {
		if err == nil {
			err = step(ctx)
		}
	}
	// The cause is more precise than context.Canceled.
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(err, cause) {
		return errors.Join(cause, err)
	}
	return err
}

// newPlay writes the configuration of the instances into a directory.
func newPlay(dir string, s *screen) (*play, error) {
	p := &play{
		screen: s, client: client{http: &http.Client{Transport: &http.Transport{}}}, keys: filepath.Join(dir, "keys"),
		journals: map[*member]*journal{}, running: map[*member]*child{},
	}
	var failed [3]error
	p.hq, failed[0] = newMember(dir, "hq", "Headquarters", 11)
	p.acme, failed[1] = newMember(dir, "acme", "Acme Ltd", 3)
	p.globex, failed[2] = newMember(dir, "globex", "Globex Inc", 7)
	if err := errors.Join(failed[:]...); err != nil {
		return nil, err
	}
	p.hq.send(p.globex, p.globex.accept(p.hq.id))
	p.acme.send(p.hq, p.hq.accept(p.acme.id))
	p.hq.send(p.acme, p.acme.accept(p.hq.id))
	// The token for the commands of README.md.
	p.curl = p.acme.accept("curl")
	key, line, err := auth.NewAPIKey(auth.APIKeyHolder{User: "operator", Sessions: []string{"*"}, Rights: auth.AllRights})
	if err != nil {
		return nil, err
	}
	p.client.key = key
	return p, errors.Join(os.WriteFile(p.keys, []byte(line+"\n"), 0o600), p.hq.write(), p.acme.write(), p.globex.write())
}

// explain prints the variables that the commands of README.md read.
func (p *play) explain() {
	p.screen.title("The instances keep running until Ctrl+C. For the commands of examples/peers/README.md, in another terminal:")
	p.screen.print("export HQ_URL=%s ACME_URL=%s\nexport HQ_KEY=%s\nexport ACME_TOKEN=%s\n",
		p.hq.url(), p.acme.url(), p.client.key, p.curl)
}
