package canon_test

import (
	"errors"
	"fmt"

	"github.com/placet-dev/placet/canon"
)

func ExampleCanonical() {
	form, err := canon.Canonical([]byte(`{ "order_id": "o-\u0037", "amount": 5.00e2, "ref": 9007199254740993 }`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(form))
	// Output: {"amount":500,"order_id":"o-7","ref":9007199254740993}
}

func ExampleDigest() {
	asked, _ := canon.Digest(canon.DomainArgs, []byte(`{"order_id":"o-7","amount":500}`))
	run, _ := canon.Digest(canon.DomainArgs, []byte(`{"amount":500.0, "order_id":"o-7"}`))
	fmt.Println(asked)
	fmt.Println(asked == run)
	// Output:
	// sha256-placet1:866b851d7be8de26cd4b1818173cc668fc4092920c865395789d522fc2cf91cc
	// true
}

func ExampleSyntaxError() {
	err := canon.Valid([]byte(`{"amount":5,"amount":500}`))
	fmt.Println(err)

	var refusal *canon.SyntaxError
	if errors.As(err, &refusal) {
		fmt.Println(refusal.Offset)
	}
	// Output:
	// byte 12: duplicate key "amount"
	// 12
}
