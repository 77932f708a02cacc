"""See `tests.gpu.faults`."""

from tests.gpu.faults import main

if __name__ == "__main__":
    main()
