package activate

import "errors"

func makePipe(string) error { return errors.New("no named pipes in folders here") }
