package httpapi

import "time"

// SetPatience changes how long clients may take, so that a test need not wait for it.
// Zero leaves one as it is.
func (s *Server) SetPatience(body, answer, linger time.Duration) {
	for to, d := range map[*time.Duration]time.Duration{&s.patience.body: body, &s.patience.answer: answer, &s.patience.linger: linger} {
		if d > 0 {
			*to = d
		}
	}
}

// SetKeepAlive changes how often a stream without events is looked after.
func (s *Server) SetKeepAlive(d time.Duration) { s.keepAlive = d }

// SetFarPatience changes how long another daemon may take for its answer.
func (s *Server) SetFarPatience(d time.Duration) { s.patience.far = d }
