package httpapi

import (
	"github.com/placet-dev/placet/call"
)

// stuck says why this daemon does not go on with a call that it could go on with since
// long, and what to do.
func (s *Server) stuck(tx call.Tx, c call.Call) (string, error) {
	why, hint := c.Unserved(s.c.Tools)
	if why == "" || c.ApprovalID == "" {
		return "", nil
	}
	d, err := tx.Decision(c.ApprovalID)
	if err != nil || !call.Overlooked(d, tx.Now()) {
		return "", err
	}
	return why + ". " + hint, nil
}
