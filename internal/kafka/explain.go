package kafka

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"syscall"

	"github.com/IBM/sarama"
)

// Explain adds to the error of a connection what its cause is if one side expects TLS and the other one does not. The error
// of such a connection is only that it was closed. Other errors and nil are returned as they are.
func Explain(cfg *sarama.Config, err error) error {
	closed := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET)
	var noTLS tls.RecordHeaderError
	switch {
	case err == nil:
		return nil
	case cfg.Net.TLS.Enable && (closed || errors.As(err, &noTLS)):
		return fmt.Errorf("%w (the broker ended the TLS handshake; a plaintext listener does so: check the port, and "+
			"whether security.protocol must be PLAINTEXT or SASL_PLAINTEXT)", err)
	case closed:
		return fmt.Errorf("%w (the broker closed the connection; a TLS listener does so: check the port, and whether "+
			"security.protocol must be SSL or SASL_SSL)", err)
	default:
		return err
	}
}
